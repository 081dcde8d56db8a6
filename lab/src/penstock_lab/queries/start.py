"""Start of a query's stages on the log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock_lab.queries.query import Query, Stage

FORMAT = "penstock"


def start(
    spark: SparkSession,
    query: Query,
    checkpoints: Path,
    *,
    streams: Mapping[str, str] | None = None,
    rows_max: int | None = None,
    available_now: bool = False,
) -> list[StreamingQuery]:
    """Start every stage, in order; the streams between stages must exist, `columns` wide.

    With `available_now` a later stage reads only what the earlier ones had written when it
    started: start the stages one by one instead, each when the one before has ended.
    """
    return [
        start_stage(
            spark,
            stage,
            checkpoints,
            streams=streams,
            rows_max=rows_max,
            available_now=available_now,
        )
        for stage in query.stages
    ]


def start_stage(
    spark: SparkSession,
    stage: Stage,
    checkpoints: Path,
    *,
    streams: Mapping[str, str] | None = None,
    rows_max: int | None = None,
    available_now: bool = False,
    every_s: float = 0.0,
    options: Mapping[str, str] = MappingProxyType({}),
) -> StreamingQuery:
    """Start one stage; its checkpoint is the folder of its name under `checkpoints`.

    `streams` says what a stream is called in the log where that is not the name it has here.
    `rows_max` bounds the rows of a batch, per input. `every_s` is the trigger interval; with 0 a
    batch begins when the one before is done. `options` are those of every source, beyond these.
    """
    named = streams or {}
    reader = spark.readStream.format(FORMAT).options(**options)
    if rows_max is not None:
        reader = reader.option("maxRowsPerTrigger", rows_max)
    frames = {name: reader.load(named.get(name, name)) for name in stage.reads}
    writer = (
        stage.build(frames)
        .writeStream.format(FORMAT)
        .outputMode(stage.mode)
        .queryName(named.get(stage.name, stage.name))
        .option("checkpointLocation", str(checkpoints / stage.name))
    )
    if stage.route:
        writer = writer.option("key", ",".join(stage.route))
    if available_now:
        writer = writer.trigger(availableNow=True)
    elif every_s:
        writer = writer.trigger(processingTime=f"{round(every_s * 1000)} milliseconds")
    return writer.start(named.get(stage.name, stage.name))
