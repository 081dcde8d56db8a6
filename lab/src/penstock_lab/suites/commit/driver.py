"""The Spark process of this suite: knows where to checkpoint and how often to trigger, per query.

`python -m penstock_lab.suites.commit.driver SETUP`, spoken to as `penstock_lab.experiment.driver`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from penstock.spark import jvm as gateway
from penstock_lab.experiment import driver as base
from penstock_lab.experiment.driver import Drain, Look, Setup, Start, Stop
from penstock_lab.experiment.plan import LOCAL
from penstock_lab.queries import Query, Stage, start_stage
from penstock_lab.suites.commit import memory
from penstock_lab.suites.commit.batches import timed


class StartCell(Start, frozen=True, tag=True):
    """Start a query with its checkpoint in a store, and with a trigger interval."""

    store: str = LOCAL
    every_s: float = 0.0


Command: TypeAlias = StartCell | Look | Drain | Stop


class Driver(base.Driver):
    """One session for all stores; tells more about a query when it stops."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._jvm_pid = memory.jvm_of(os.getpid())

    def _start(self, command: Start) -> dict[str, Any]:
        if self._jvm_pid is not None:
            memory.forget_peak(self._jvm_pid)
        return super()._start(command)

    def _on_log(self, query: Query, stage: Stage, command: Start) -> StreamingQuery:
        assert isinstance(command, StartCell)
        # One slash after the scheme is a whole address too, and all that a Path keeps.
        local = command.store == LOCAL
        folder = Path(command.folder if local else f"{command.store}:{command.folder}")
        return start_stage(
            self._spark,
            stage,
            folder / "checkpoints",
            streams=command.streams,
            rows_max=command.rows_max,
            every_s=command.every_s,
        )

    def stop(self) -> dict[str, Any]:
        """What its batches took, batch by batch, and the steps of its commits, asked in time."""
        told: dict[str, Any] = {"batches": [], "steps": {}, "rss_mb": None}
        for _, query in self._running:
            told["batches"] = [msgspec.to_builtins(timed(one)) for one in query.recentProgress]
            told["steps"] = gateway.commit_steps(str(query.id))
        if self._jvm_pid is not None:
            told["rss_mb"] = memory.peak_mb(self._jvm_pid)
        return {**super().stop(), **told}


if __name__ == "__main__":
    base.main(Driver, Command)
