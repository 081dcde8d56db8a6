"""Records of the devices suite, as a result file has them and takes them in again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock.errors import BadCall
from penstock.model.device_plans import OperationKind
from penstock_lab.experiment.device_plans import PlannedBatches
from penstock_lab.experiment.record import Kind, Measured
from penstock_lab.experiment.together import QueryRun
from penstock_lab.measure.inflection import LearnedPoint
from penstock_lab.measure.size_times import SizeTimes
from penstock_lab.percentiles import median
from penstock_lab.suites.devices.cells import Cell

SUITE_NAME = "devices"


class OperationRecord(msgspec.Struct, frozen=True, tag_field="part", tag="operations"):
    """Times of one operation over sizes, on both devices."""

    kind: OperationKind
    sizes: tuple[SizeTimes, ...] = ()
    repeat: int = 0
    reason: str = ""
    """Why there is no time of it."""


class InflectionRecord(msgspec.Struct, frozen=True, tag_field="part", tag="inflection"):
    """The inflection point of one operation, and where learning has arrived from wrong starts."""

    kind: OperationKind
    measured_bytes: float | None = None
    """None: one device is cheaper at every size, or they cross without parting; `reason` says."""
    points: tuple[LearnedPoint, ...] = ()
    sizes: tuple[SizeTimes, ...] = ()
    """The times around the point, each run over rows that were just made."""
    reason: str = ""
    repeat: int = 0


class SparkRecord(Measured[Cell], frozen=True, tag_field="part", tag="spark"):
    """A run of a workload in a mode, in numbers; those of batches are of the measured stretch."""

    mean_ms: float | None = None
    """The latency of an input row, intended send to its batch's marker."""
    batch_ms: float | None = None
    """From the cut of a batch to its marker: the paper's processing time, in the mean."""
    batches: int = 0
    batch_rows: float | None = None
    """Median."""
    planning_share: float | None = None
    """Of batch time, planning and learning; None where nothing was planned."""
    planned: PlannedBatches | None = None
    plan_notes: tuple[str, ...] = ()
    is_reversed: bool | None = None
    """Whether the modes of its repeat ran from the last to the first; None in a search."""

    @property
    def is_bound(self) -> bool:
        """Latencies are a lower bound, because the run only fell behind."""
        return self.run.verdict.kind == "stalled" and self.mean_ms is not None

    @property
    def gpu_share(self) -> float | None:
        """The share of batches of which a task ran something on the GPU, whatever was planned; None
        where nobody planned them."""
        return self._share("gpu", "split")

    @property
    def columnar_share(self) -> float | None:
        """The share of batches that went to workers; None where nobody planned them."""
        return self._share("cpu", "gpu", "split")

    def _share(self, *ways: str) -> float | None:
        if self.planned is None:
            return None
        return sum(self.planned.ways.get(way, 0.0) for way in ways)


Record: TypeAlias = OperationRecord | InflectionRecord | SparkRecord


def spark_record(
    cell: Cell, query_run: QueryRun, kind: Kind, is_reversed: bool | None = None
) -> SparkRecord:
    """A run in numbers."""
    spans = [span for span in query_run.measured if span.rows]
    took_ms = [span.took_ms for span in spans]
    is_planned = query_run.planned is not None
    return SparkRecord(
        cell,
        query_run.run,
        kind,
        query_run.mean_ms,
        sum(took_ms) / len(took_ms) if took_ms else None,
        len(spans),
        median([float(span.rows) for span in spans]),
        query_run.admission.get("planning_share") if is_planned else None,
        query_run.planned,
        query_run.plan_notes,
        is_reversed,
    )


def for_file(record: Record) -> dict[str, Any]:
    """A record for the result file; single lags are summed up in `sent` already."""
    built: dict[str, Any] = msgspec.to_builtins(record)
    if isinstance(record, SparkRecord):
        del built["run"]["lag_ms"]
    return built


def records_in(files: Sequence[Path]) -> tuple[Record, ...]:
    """The records of result files; repeats are counted on, so that two files share none."""
    every: list[Record] = []
    for file in files:
        after = 1 + max((record.repeat for record in every), default=-1)
        every += [later(record, after) for record in _records(file)]
    return tuple(every)


def _records(file: Path) -> Iterable[Record]:
    try:
        result = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        if result.get("suite") != SUITE_NAME:
            raise BadCall(
                f"{file} is a result of {result.get('suite')!r}; give one of {SUITE_NAME}",
                code="bad_request",
            )
        return [msgspec.convert(run, Record) for run in result["runs"]]
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, KeyError) as error:
        raise BadCall(
            f"{file} holds no result that can be merged ({error}); give a file that "
            f"'penstock bench {SUITE_NAME} --json' of this version has written",
            code="bad_request",
        ) from error


def later(record: Record, by: int) -> Record:
    """The record as one of a later repeat."""
    if isinstance(record, SparkRecord):
        run = msgspec.structs.replace(record.run, repeat=record.run.repeat + by)
        return msgspec.structs.replace(record, run=run)
    return msgspec.structs.replace(record, repeat=record.repeat + by)


def on_spark(records: Iterable[Record], kind: Kind | None = None) -> list[SparkRecord]:
    """Runs on Spark, all or of a kind."""
    return [
        record
        for record in records
        if isinstance(record, SparkRecord) and kind in (None, record.kind)
    ]
