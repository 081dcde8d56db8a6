"""Queries over windows, run over commits of a stream, with the answer of every batch."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.observe.plan_notes import PlanNote

SETTING = "spark.penstock.windows"
ZONE = "spark.sql.session.timeZone"
OPERATOR_COUNTS = (
    *("numRowsTotal", "numRowsUpdated", "numRowsRemoved"),
    *("numRowsDroppedByWatermark", "operatorName"),
)
Answer = dict[int, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class WindowRun:
    """One run of a query: rows by batch, what Spark reported of each batch, and the last plan."""

    answer: Answer
    progress: list[dict[str, Any]]
    plan: str
    notes: list[PlanNote]


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
) -> WindowRun:
    """A query run until it has read all of a stream of the log, one commit in each batch."""

    def frame() -> DataFrame:
        reader = spark.readStream.format("penstock").option("maxRowsPerTrigger", 1)
        return build(reader.load(stream))

    return run_frame(spark, frame, checkpoint, windows=windows, mode=mode, settings=settings)


def run_frame(
    spark: SparkSession,
    frame: Callable[[], DataFrame],
    checkpoint: str,
    *,
    windows: str | None = None,
    mode: str = "update",
    settings: Mapping[str, str] | None = None,
) -> WindowRun:
    """A query run until its sources have nothing more; the frame is made with the settings set."""
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
        return WindowRun(
            answer,
            [counts(p) for p in query.recentProgress],
            plan(query),
            [note for note in penstock.plan_notes(query) if note.rule == "panes"],
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
        "watermark": progress["eventTime"].get("watermark"),
        "metrics": {name: plain(row) for name, row in progress["observedMetrics"].items()},
        "state": [
            {name: operator[name] for name in OPERATOR_COUNTS}
            for operator in progress["stateOperators"]
        ],
    }


def plain(value: Any) -> Any:
    """A value that can be compared: rows as tuples, no number as a word, -0.0 as 0.0."""
    if isinstance(value, Row | tuple | list):
        return tuple(plain(part) for part in value)
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, Decimal):
        return ("decimal", str(value))
    return value


def differences(ours: Answer, theirs: Answer) -> list[str]:
    """Batches whose rows differ; doubles may differ in their last bits."""
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
        return ours == theirs or math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=1e-9)
    return bool(ours == theirs) and type(ours) is type(theirs)
