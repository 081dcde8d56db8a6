"""The floor suite: what the log adds to the least a stateful micro-batch can cost.

Spark and Penstock take turns, each run in a process and folders of its own, so that neither a slow
minute of the machine nor what the other left in memory falls on one of them only.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock_lab.experiment.report import Figure, Goal, Result, result
from penstock_lab.experiment.worker import Job, ask
from penstock_lab.percentiles import median
from penstock_lab.suites import floor_batch, floor_log

SUITE = "floor"
BATCH_WORKER = "penstock_lab.suites.floor_batch"
LOG_WORKER = "penstock_lab.suites.floor_log"
RUN_TIMEOUT_S = 240.0


class Size(msgspec.Struct, frozen=True):
    """How much is run; the quick one differs in repeats only, so that figures stay comparable."""

    repeats: int
    batches: int = 100
    warm_up: int = 20
    fetch_mb: int = 512


QUICK = Size(repeats=3)
FULL = Size(repeats=5)

Tell = Callable[[str], None]
"""Called with what is about to run, once for each of `steps(size)`."""


def steps(size: Size) -> int:
    return 1 + 4 * size.repeats


@dataclass(frozen=True)
class Floor:
    """One run of the suite in a folder that is removed afterwards."""

    size: Size
    folder: Path
    tell: Tell
    runs: list[dict[str, Any]] = field(default_factory=list)

    def run(self) -> None:
        fetched = self._folder("fetch")
        options = {"mb": self.size.fetch_mb}
        self._ask(LOG_WORKER, Job("fill", str(fetched), options), 0, "filling the log")
        batch_options = {
            "warm_up": self.size.warm_up,
            "batches": self.size.batches,
            "timeout_s": RUN_TIMEOUT_S / 2,
        }
        for repeat in range(self.size.repeats):
            # Whoever runs first may find the machine cooler: they take turns in that too.
            order = ("spark", "penstock") if repeat % 2 == 0 else ("penstock", "spark")
            for system in order:
                folder = self._folder(f"{system}-{repeat}")
                job = Job(system, str(folder), batch_options)
                self._ask(BATCH_WORKER, job, repeat, f"micro-batches on {system}")
                shutil.rmtree(folder)
            folder = self._folder(f"append-{repeat}")
            self._ask(LOG_WORKER, Job("append", str(folder)), repeat, "durable appends")
            shutil.rmtree(folder)
            self._ask(LOG_WORKER, Job("fetch", str(fetched)), repeat, "the log into Spark")

    def _folder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(parents=True)
        return folder

    def _ask(self, module: str, job: Job, repeat: int, what: str) -> None:
        self.tell(f"{what}, {repeat + 1} of {self.size.repeats}")
        answer = ask(module, job, RUN_TIMEOUT_S)
        self.runs.append({"system": job.system, "repeat": repeat, **answer})


def run(size: Size, folder: Path, tell: Tell) -> tuple[Result, list[Figure]]:
    """Run the suite under `folder`; needs about 2 GB there for as long as it runs."""
    place = Path(tempfile.mkdtemp(prefix="penstock-floor-", dir=folder))
    try:
        floor = Floor(size, place, tell)
        floor.run()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    found = figures(floor.runs)
    return result(SUITE, settings(size), floor.runs, found), found


def settings(size: Size) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(size),
        "rows": floor_batch.ROWS,
        "keys": floor_batch.KEYS,
        "partitions": floor_batch.PARTITIONS,
        "master": floor_batch.MASTER,
        "spark": floor_batch.CONF,
        "append_bytes": floor_log.APPEND_BYTES,
        "entry_bytes": floor_log.ENTRY_BYTES,
        "row_bytes": floor_log.ROW_BYTES,
    }


def figures(runs: list[dict[str, Any]]) -> list[Figure]:
    """The figures of all repeats. What Penstock adds is taken within each repeat, then its median:
    runs that were neighbours in time are compared, not the luckiest of each kind."""
    spark = _of(runs, "spark", "trigger_ms_p50")
    ours = _of(runs, "penstock", "trigger_ms_p50")
    over = tuple(our - their for our, their in zip(ours, spark, strict=True))
    return [
        _figure("spark_ms_p50", "ms", "stateful batch, Spark's rate source, no sink", spark),
        _figure("penstock_ms_p50", "ms", "same batch from the log, committed to the log", ours),
        _figure(
            "headline.over_spark_ms", "ms", "what the log and its commit add", over,
            Goal("at most", 40),
        ),
        _figure(
            "append_ms_p50", "ms", "durable append of 100 KB from Python",
            _of(runs, "append", "append_ms_p50"), Goal("under", 3),
        ),
        _figure(
            "fetch_mb_per_s", "MB/s", "one substream into Spark",
            _of(runs, "fetch", "fetch_mb_per_s"), Goal("over", 200),
        ),
    ]  # fmt: skip


def _of(runs: list[dict[str, Any]], system: str, name: str) -> tuple[float, ...]:
    by_repeat = sorted((run["repeat"], run[name]) for run in runs if run["system"] == system)
    return tuple(float(value) for _, value in by_repeat)


def _figure(
    name: str, unit: str, what: str, repeats: tuple[float, ...], goal: Goal | None = None
) -> Figure:
    return Figure(name, unit, what, median(repeats) or 0.0, repeats, goal)


def phases(runs: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Per phase of a batch its median over the repeats, for Spark and for Penstock."""
    named: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for phase, value in run.get("phases_ms", {}).items():
            named.setdefault(phase, {}).setdefault(run["system"], []).append(value)
    return {
        phase: {system: median(values) or 0.0 for system, values in by_system.items()}
        for phase, by_system in named.items()
    }
