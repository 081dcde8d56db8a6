"""The cost of a finished batch, and an estimator's prediction of one."""

from __future__ import annotations

from typing import Protocol

import msgspec


class BatchCost(msgspec.Struct, frozen=True):
    """A finished batch with its time from cut to visible."""

    cut: int
    visible_ms: float
    rows: int | None = None
    bytes: int | None = None
    has_data: bool = True
    queued_ms: float = 0.0
    planning_ms: float = 0.0
    core_ms: float = 0.0
    longest_task_ms: float = 0.0
    tasks: int = 0
    cores: int = 1


class Predicted(msgspec.Struct, frozen=True):
    """A prediction for a batch that has the cores to itself.

    `ms_p50` is the median time, `ms_high` one that few batches exceed (equal where an
    estimator knows only a mean); `core_ms` the core-time, `longest_task_ms` its longest task.
    """

    ms_p50: float
    ms_high: float
    core_ms: float = 0.0
    longest_task_ms: float = 0.0


class Estimator(Protocol):
    """A model of what batches of one query cost."""

    @property
    def batches(self) -> int:
        """The number of batches with data it has learned from, as far as it remembers."""
        ...

    def predict(self, rows: int | None, size_bytes: int | None, cores: float) -> Predicted | None:
        """The cost of a batch of this size; None before there is any history."""
        ...

    def learn(self, cost: BatchCost) -> None:
        """Take one finished batch into account."""
        ...
