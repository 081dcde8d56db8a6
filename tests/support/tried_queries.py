"""A group of queries run to its end, its driver killed half-way, and what must be right then."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.client.address import Address
from penstock_lab.experiment.children import Engine
from penstock_lab.experiment.driver_commands import Command, Count, Setup, Stop
from penstock_lab.experiment.state_reads import CacheReads
from penstock_lab.measure.killed_driver import Answered, Size, Trial
from penstock_lab.measure.query_groups import Asked, Group
from support.sources import ROOT

EVENTS_MIN = 100_000
BATCHES_MIN = 20
DRIVER = "support.wrong_driver"


@dataclass(frozen=True)
class Done:
    """A group that was run to its end with a kill in the middle; its server is still there."""

    trial: Trial
    answered: Mapping[str, Answered]
    reads: Mapping[str, CacheReads] = field(default_factory=dict)
    """Reads of state by the second driver, by stage, where they were to be counted."""

    def asked(self, name: str) -> Asked:
        return next(
            asked_query for asked_query in self.trial.group.asked if asked_query.name == name
        )


class CountedEngine(Engine):
    """A driver that is asked for the counts of its caches before it is stopped."""

    def __init__(self, setup: Setup, address: Address | None, reads: dict[str, CacheReads]) -> None:
        super().__init__(setup, address, DRIVER)
        self._reads = reads

    def ask(self, command: Command, timeout_s: float) -> dict[str, Any]:
        if isinstance(command, Stop):
            counts = super().ask(Count(), timeout_s)
            self._reads |= msgspec.convert(counts, type=dict[str, CacheReads])
        return super().ask(command, timeout_s)


def tried(group: Group, size: Size, folder: Path, *, counts_reads: bool = False) -> Iterator[Done]:
    """For a fixture. The driver finds `support` on its path."""
    reads: dict[str, CacheReads] = {}

    def opening(setup: Setup, address: Address | None) -> Engine:
        if counts_reads:
            return CountedEngine(setup, address, reads)
        return Engine(setup, address, DRIVER)

    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *([before] if before else [])])
    try:
        with Trial(group, size, folder, opening=opening) as trial:
            yield Done(trial, {answered.query: answered for answered in trial.run()}, reads)
    finally:
        os.environ.pop("PYTHONPATH")
        if before:
            os.environ["PYTHONPATH"] = before


def assert_right(done: Done, name: str) -> None:
    comparison = done.answered[name]
    assert comparison.error is None, comparison.error
    assert comparison.different == 0, "\n".join(comparison.differences)
    assert comparison.rows > 0
    assert comparison.events >= EVENTS_MIN
    assert comparison.batches >= BATCHES_MIN
    assert 0 < comparison.batches_at_the_kill < comparison.batches
    assert comparison.instance == 2
