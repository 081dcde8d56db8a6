"""Jobs of tasks that only sleep, in threads of their own, and when each task started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from pyspark import SparkStageInfo
from pyspark.sql import SparkSession

ALL_S = 120.0
"""How long a job that is not broken may take at most."""

SLEEPING = (
    "java_method('java.lang.System', 'currentTimeMillis') as at",
    "java_method('java.lang.Thread', 'sleep', {ms}L) as slept",
)


def sleeping(ms: int) -> list[str]:
    """Columns that tell when they were computed, and take so long."""
    return [column.format(ms=ms) for column in SLEEPING]


class SleepingJob(threading.Thread):
    """One job of `tasks` tasks; `due_s` is how far off its deadline is when it starts."""

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        tasks: int,
        *,
        ms: int = 60,
        pool: str | None = None,
        due_s: float | None = None,
        **properties: str,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self.starts: list[int] = []
        self.error: Exception | None = None
        self._spark = spark
        self._tasks = tasks
        self._ms = ms
        self._properties = {
            "spark.scheduler.pool": pool,
            "penstock.query": name,
            "penstock.deadlineAt": None if due_s is None else str(deadline_at(due_s)),
            **{f"penstock.{key}": value for key, value in properties.items()},
        }

    def run(self) -> None:
        context = self._spark.sparkContext
        try:
            set_properties(self._spark, self._properties)
            context.setJobGroup(self.name, self.name)
            tasks = self._spark.range(0, self._tasks, 1, self._tasks)
            rows = tasks.selectExpr(*sleeping(self._ms)).collect()
            self.starts = sorted(int(row["at"]) for row in rows)
        except Exception as error:
            self.error = error

    def wait_for(self, ended: int) -> None:
        """Until so many of its tasks have ended, and more are left."""
        wait_until(lambda: self.ended() >= ended)
        assert self.is_alive(), f"{self.name} ended before it was looked at"

    def ended(self) -> int:
        return sum(stage.numCompletedTasks for stage in self._stages())

    def _stages(self) -> list[SparkStageInfo]:
        tracker = self._spark.sparkContext.statusTracker()
        stages = [
            tracker.getStageInfo(stage)
            for job in tracker.getJobIdsForGroup(self.name)
            for stage in getattr(tracker.getJobInfo(job), "stageIds", ())
        ]
        return [stage for stage in stages if stage is not None]

    def started(self) -> list[int]:
        """When each of its tasks started, in milliseconds since 1970; waits for all of them."""
        self.join(ALL_S)
        assert not self.is_alive(), f"{self.name} has not ended after {ALL_S} s"
        if self.error is not None:
            raise self.error
        assert len(self.starts) == self._tasks
        return self.starts


def within(starts: list[int], window: list[int]) -> int:
    """How many of the starts lie after the first and before the last one of the window."""
    return sum(window[0] < start < window[-1] for start in starts)


def tasks_with_a_core(spark: SparkSession) -> int:
    """Tasks of all jobs that run now, as the scheduler itself counts them.

    Spark's status store may show the second of two tasks that start together seconds later.
    """
    context: Any = spark.sparkContext
    return int(context._jsc.sc().taskScheduler().rootPool().runningTasks())


def deadline_at(due_s: float) -> int:
    return int((time.time() + due_s) * 1000)


def set_properties(spark: SparkSession, properties: dict[str, str | None]) -> None:
    context: Any = spark.sparkContext
    for key, value in properties.items():
        context.setLocalProperty(key, value)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + ALL_S
    while not holds():
        assert time.monotonic() < end, f"not so after {ALL_S} s"
        time.sleep(0.005)
