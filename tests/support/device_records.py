"""Records of made-up runs of the devices suite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from penstock_lab.experiment.device_plans import PlannedBatches
from penstock_lab.experiment.record import Kind
from penstock_lab.measure.inflection import LearnedPoint
from penstock_lab.measure.size_times import SizeTimes
from penstock_lab.suites.devices import SUITE
from penstock_lab.suites.devices.cells import Cell
from penstock_lab.suites.devices.modes import (
    BASELINE,
    LMSTREAM,
    OURS,
    OURS_COLUMNAR,
    STATIC,
    THROUGHPUT_PANES,
)
from penstock_lab.suites.devices.plans import Asked, asked_of
from penstock_lab.suites.devices.records import (
    InflectionRecord,
    OperationRecord,
    Record,
    SparkRecord,
)
from support.bench_records import names_of, run_of

CORES = 12
LOW, HIGH = Cell("LR1T", "constant", 1_000), Cell("LR1T", "random", 200_000)


def no_absence() -> str | None:
    return None


def asked(absence: Callable[[], str | None] = no_absence, **options: Any) -> Asked:
    """The plan of a command line on a machine of 16 cores, with a GPU unless told otherwise."""
    return asked_of(**{"quick": True, "cores": CORES, **options}, absence=absence)


def spark_run(
    cell: Cell,
    mode: str,
    mean_ms: float = 100.0,
    batch_ms: float = 50.0,
    *,
    repeat: int = 0,
    verdict: str = "ok",
    kind: Kind = "compared",
    overhead: float = 0.002,
) -> SparkRecord:
    """A run of a mode at a cell whose latency does not rise unless it stalls."""
    run = run_of(cell.workload, mode, repeat, 2 * mean_ms, verdict)
    run = msgspec.structs.replace(run, rate=cell.rate, slope_ms_per_s=1.0)
    planned = PlannedBatches(
        20, 1, {"gpu": 0.25, "panes": 0.75}, 250_000.0, fallbacks={"busy": 12, "full": 1}
    )
    return SparkRecord(
        cell, run, kind, mean_ms, batch_ms, 20, 9_000.0, overhead, planned, ("devices: gpu: sort",)
    )


def inflection(kind: Any, truth_kb: float, *found_kb: float | None, repeat: int = 0) -> Record:
    """A point of an operation, and those that ours arrives at from too high and too low."""
    points = [
        LearnedPoint("ours", factor, None if kb is None else kb * 1_024, 100, 2)
        for factor, kb in zip((10.0, 0.1), found_kb, strict=True)
    ]
    return InflectionRecord(kind, truth_kb * 1_024, tuple(points), repeat=repeat)


def every_record() -> list[Record]:
    """One run of each part; of the modes those that the headline needs."""
    sizes = (
        SizeTimes(4 << 10, 64, 0.1, 0.5, 0.05, 0.05),
        SizeTimes(1 << 20, 16_384, 9.0, 0.9, 0.1, 0.1),
    )
    points = tuple(
        LearnedPoint(policy, factor, 61_440.0, 100, 2)
        for policy in ("ours", "lmstream")
        for factor in (10.0, 0.1)
    )
    modes = {
        BASELINE: 400.0,
        THROUGHPUT_PANES: 300.0,
        STATIC: 200.0,
        LMSTREAM: 120.0,
        OURS_COLUMNAR: 110.0,
        OURS: 100.0,
    }
    return [
        OperationRecord("sort", sizes),
        InflectionRecord("sort", 60_000.0, points),
        *(spark_run(cell, mode, ms, ms / 2) for cell in (LOW, HIGH) for mode, ms in modes.items()),
        spark_run(Cell("LR1T", "random", 400_000), OURS, kind="sustain"),
        spark_run(Cell("LR1T", "random", 400_000), BASELINE, kind="sustain", verdict="stalled"),
    ]


def devices_names() -> set[str]:
    return names_of(SUITE, asked(), every_record())
