"""Queries over windows, run over commits of a stream, with the answer of every batch."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.observe.plan_notes import PlanNote

SETTING = "spark.penstock.windows"
DEVICES = "spark.penstock.devices"
ZONE = "spark.sql.session.timeZone"
OPERATOR_COUNTS = (
    *("numRowsTotal", "numRowsUpdated", "numRowsRemoved"),
    *("numRowsDroppedByWatermark", "operatorName"),
)
Answer = dict[int, list[tuple[Any, ...]]]
AtEnd = Callable[[StreamingQuery], None]


@dataclass(frozen=True)
class WindowRun:
    """One run of a query: rows by batch, what Spark reported of each batch, and the last plan."""

    answer: Answer
    progress: list[dict[str, Any]]
    plan: str
    notes: list[PlanNote]
    device_notes: list[PlanNote]


@contextlib.contextmanager
def conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, which a query that is started takes over for good."""
    before = {key: value for key in settings if (value := spark.conf.get(key, None)) is not None}
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in settings:
            if key in before:
                spark.conf.set(key, before[key])
            else:
                spark.conf.unset(key)


def run(
    spark: SparkSession,
    stream: str,
    build: Callable[[DataFrame], DataFrame],
    checkpoint: str,
    *,
    windows: str | None = None,
    mode: str = "update",
    settings: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    at_end: AtEnd | None = None,
) -> WindowRun:
    """A query run until it has read all of a stream of the log, one commit in each batch."""

    def frame() -> DataFrame:
        reader = spark.readStream.format("penstock").option("maxRowsPerTrigger", 1)
        return build(reader.options(**(options or {})).load(stream))

    chosen = {**(settings or {}), **({} if windows is None else {SETTING: windows})}
    return run_frame(spark, frame, checkpoint, mode=mode, settings=chosen, at_end=at_end)


class Compared:
    """Runs of one query over one stream, by Spark and in our way; each has its own checkpoint.

    `setting` says which of both: `spark`, or the value `ours`.
    """

    def __init__(
        self, spark: SparkSession, stream: str, folder: Path, setting: str, ours: str
    ) -> None:
        self._spark, self._stream, self._folder = spark, stream, folder
        self._setting, self._ours = setting, ours

    def run(
        self,
        build: Callable[[DataFrame], DataFrame],
        value: str,
        *,
        checkpoint: str | None = None,
        settings: Mapping[str, str] | None = None,
        mode: str = "update",
    ) -> WindowRun:
        place = self._folder / f"{self._stream}-{checkpoint or value}"
        chosen = {self._setting: value, **(settings or {})}
        return run(self._spark, self._stream, build, str(place), settings=chosen, mode=mode)

    def check(self, build: Callable[[DataFrame], DataFrame], **more: Any) -> WindowRun:
        """Our run, which was found to be Spark's in all that can be compared."""
        theirs = self.run(build, "spark", **more)
        ours = self.run(build, self._ours, **more)
        assert differences(theirs.answer, ours.answer) == []
        assert ours.progress == theirs.progress
        return ours


def run_frame(
    spark: SparkSession,
    frame: Callable[[], DataFrame],
    checkpoint: str,
    *,
    windows: str | None = None,
    mode: str = "update",
    settings: Mapping[str, str] | None = None,
    at_end: AtEnd | None = None,
) -> WindowRun:
    """A query run until its sources have nothing more; the frame is made with the settings set, and
    `at_end` sees the query before it is stopped."""
    chosen = {**(settings or {}), **({} if windows is None else {SETTING: windows})}
    answer: Answer = {}

    def keep(rows: DataFrame, batch: int) -> None:
        answer[batch] = sorted((plain(row) for row in rows.collect()), key=repr)

    with conf(spark, chosen):
        query = (
            frame()
            .writeStream.outputMode(mode)
            .option("checkpointLocation", checkpoint)
            .foreachBatch(keep)
            .start()
        )
    try:
        query.processAllAvailable()
        # An idle query reports, too, once it has been idle for long.
        progress = [counts(p) for p in query.recentProgress]
        if at_end is not None:
            at_end(query)
        notes = penstock.plan_notes(query)
        return WindowRun(
            answer,
            progress,
            plan(query),
            [note for note in notes if note.rule == "panes"],
            [note for note in notes if note.rule == "devices"],
        )
    finally:
        query.stop()


def plan(query: StreamingQuery) -> str:
    """The physical plan of the query's last batch."""
    return str(query._jsq.explainInternal(False))


def counts(progress: Mapping[str, Any]) -> dict[str, Any]:
    """What Spark counted in a batch and where its watermark stood: no times."""
    return {
        "batch": progress["batchId"],
        "rows": progress["numInputRows"],
        **{name: progress["eventTime"].get(name) for name in ("watermark", "min", "max")},
        "metrics": {name: plain(row) for name, row in progress["observedMetrics"].items()},
        "state": [
            {name: operator[name] for name in OPERATOR_COUNTS}
            for operator in progress["stateOperators"]
        ],
    }


def plain(value: Any) -> Any:
    """A value that can be compared: rows as tuples, no number as a word."""
    if isinstance(value, Row | tuple | list):
        return tuple(plain(part) for part in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return ("decimal", str(value))
    return value


def rows_written(answer: Answer) -> list[str]:
    """All rows of a run, each written once in append mode; batches differ at restarts."""
    return sorted(repr(row) for rows in answer.values() for row in rows)


def state_description(checkpoint: Path) -> dict[str, bytes]:
    """The description of the first operator's state in a checkpoint, file by file."""
    files = [path for path in (checkpoint / "state" / "0").rglob("*") if path.is_file()]
    return {
        path.parent.name: path.read_bytes()
        for path in sorted(files)
        if {"_metadata", "_stateSchema"} & set(path.parts) and path.suffix != ".crc"
    }


def differences(ours: Answer, theirs: Answer) -> list[str]:
    """Batches whose rows differ; doubles may differ in their last bits, zeros not in their sign."""
    if ours.keys() != theirs.keys():
        return [f"batches {sorted(ours)} against {sorted(theirs)}"]
    return [
        f"batch {batch}: {rows} against {theirs[batch]}"
        for batch, rows in ours.items()
        if not is_close(tuple(rows), tuple(theirs[batch]))
    ]


def is_close(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, tuple) and isinstance(theirs, tuple):
        return len(ours) == len(theirs) and all(map(is_close, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        if ours == theirs == 0.0:
            return math.copysign(1.0, ours) == math.copysign(1.0, theirs)
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(ours == theirs) and type(ours) is type(theirs)
