"""Cluster monitoring, mean requested cpu per job over the tasks that were scheduled.

Append; written once per window, when event time has passed its end by 1 s, and dropped then. The
mean is the exact sum (six decimals) over the number of events of type 1, as a double. MiSA calls
it CM2, LMStream CM2S; LightSaber's code sums events of type 3 under this name.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds
from penstock_lab.queries.sliding import DELAY_S, exact, variant, window

SCHEDULED = 1


def query(*, range_s: int, slide_s: int) -> Query:
    name = variant("cm_job", range_s, slide_s)
    stage = Stage(
        name,
        ("tasks",),
        "starts_at timestamp, job bigint, cpu double, sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s),
        watermarks=(Watermark("tasks", "at", DELAY_S * 1_000, f"event_type = {SCHEDULED}"),),
    )
    return Query(name, "cm_job", (stage,), {"range_s": range_s, "slide_s": slide_s})


def _build(frames: Frames, range_s: int, slide_s: int) -> DataFrame:
    mean = f.sum(exact("cpu", 6)).cast("double") / f.count("*").cast("double")
    return (
        frames["tasks"]
        .withWatermark("at", seconds(DELAY_S))
        .where(f.col("event_type") == SCHEDULED)
        .groupBy(window("at", range_s, slide_s), "job")
        .agg(mean.alias("cpu"), f.max("sent_at").alias("sent_at"))
        .select(f.col("window.start").alias("starts_at"), "job", "cpu", "sent_at")
    )
