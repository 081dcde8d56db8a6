"""Python workers of a running Spark, killed while a task waits for them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

PAUSE_S = 0.002
KILLED_MAX = 2
"""Fewer than the attempts that a task has."""


class WorkerKiller:
    """Kills workers of this driver until a task has failed by it, but no more than two."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="worker-killer", daemon=True)
        self._stages: set[int] = set()
        self.killed: list[int] = []

    def __enter__(self) -> WorkerKiller:
        # Spark notices that an idle worker is gone and takes another: none may be left.
        for process in workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def has_failed_task(self) -> bool:
        infos = [self._tracker.getStageInfo(stage) for stage in sorted(self._stages)]
        return any(info is not None and info.numFailedTasks for info in infos)

    def _run(self) -> None:
        while not self._stop.is_set() and len(self.killed) < KILLED_MAX:
            active = self._tracker.getActiveStageIds()
            self._stages |= set(active)
            if self.killed and self.has_failed_task:
                return
            alive = sorted(set(workers()) - set(self.killed)) if active else []
            for process in alive[:1]:
                os.kill(process, signal.SIGKILL)
                self.killed.append(process)
            self._stop.wait(PAUSE_S)


def workers() -> list[int]:
    """Processes that Spark's Python daemons under this process have forked."""
    parents = {pid: parent_of(pid) for pid in processes()}
    daemons = {pid for pid in parents if "pyspark.daemon" in command_of(pid)}
    ours = {pid for pid in daemons if os.getpid() in ancestors(pid, parents)}
    return [pid for pid in ours if parents[pid] in ours]


def processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def parent_of(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return 0
    return int(text.rpartition(")")[2].split()[1])


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ")
    except (OSError, UnicodeDecodeError):
        return ""


def ancestors(pid: int, parents: dict[int, int]) -> set[int]:
    above: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in above:
        above.add(pid)
    return above
