"""Round trips to a Python worker, from the times that Spark reports of the tasks that made them.

The clock of a worker starts when its task asks for one: `boot` lasts until it is at work, `init`
until it has read what it is to run; `code` is the time in which that ran, as the worker measures
it, and `rest` all else until it was done. All are whole milliseconds, as Spark has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.observe.batch_ledger import BatchRecord, Task
from penstock_lab.percentiles import median

BOOT, INIT = "time to start Python workers", "time to initialize Python workers"
CODE, TOTAL = "time to execute Python code", "time to run Python workers"


class RoundTrip(msgspec.Struct, frozen=True):
    """Medians over the round trips of a run; they need not add up."""

    boot_ms: float
    init_ms: float
    code_ms: float
    rest_ms: float
    total_ms: float
    task_ms: float
    """The whole task, with its scan and what it writes for the shuffle."""


def round_trip(records: Sequence[BatchRecord], warm_up: int) -> RoundTrip | None:
    """The parts of a round trip after so many batches that had one; None if none had."""
    asked = [[task for task in record.tasks if TOTAL in task.metrics] for record in records]
    tasks = [task for each in [tasks for tasks in asked if tasks][warm_up:] for task in each]
    if not tasks:
        return None
    return RoundTrip(
        _middle([task.metrics.get(BOOT, 0.0) for task in tasks]),
        _middle([task.metrics.get(INIT, 0.0) for task in tasks]),
        _middle([task.metrics.get(CODE, 0.0) for task in tasks]),
        _middle([rest_ms(task) for task in tasks]),
        _middle([task.metrics[TOTAL] for task in tasks]),
        _middle([task.run_ms for task in tasks]),
    )


def rest_ms(task: Task) -> float:
    """The time of a round trip that no part explains."""
    parts = sum(task.metrics.get(name, 0.0) for name in (BOOT, INIT, CODE))
    return max(task.metrics[TOTAL] - parts, 0.0)


def _middle(values: Sequence[float]) -> float:
    return median(values) or 0.0
