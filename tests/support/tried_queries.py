"""A group of queries run to its end, its driver killed half-way, and what must be right then."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from penstock_lab.experiment.children import Engine
from penstock_lab.measure.killed_driver import Answered, Size, Trial
from penstock_lab.measure.query_groups import Asked, Group
from support.sources import ROOT

EVENTS_MIN = 100_000
BATCHES_MIN = 20


@dataclass(frozen=True)
class Done:
    """A group that was run to its end with a kill in the middle; its server is still there."""

    trial: Trial
    answered: Mapping[str, Answered]

    def asked(self, name: str) -> Asked:
        return next(one for one in self.trial.group.asked if one.name == name)


def tried(group: Group, size: Size, folder: Path) -> Iterator[Done]:
    """For a fixture. The driver finds `support` on its path."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *([before] if before else [])])
    try:
        opening = partial(Engine, module="support.wrong_driver")
        with Trial(group, size, folder, opening=opening) as trial:
            yield Done(trial, {one.query: one for one in trial.run()})
    finally:
        os.environ.pop("PYTHONPATH")
        if before:
            os.environ["PYTHONPATH"] = before


def assert_right(done: Done, name: str) -> None:
    found = done.answered[name]
    assert found.error is None, found.error
    assert found.different == 0, "\n".join(found.differences)
    assert found.rows > 0
    assert found.events >= EVENTS_MIN
    assert found.batches >= BATCHES_MIN
    assert 0 < found.batches_at_the_kill < found.batches
    assert found.instance == 2
