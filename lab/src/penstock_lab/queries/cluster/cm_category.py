"""Cluster monitoring, requested cpu per category, sorted by it.

Sorted; written once per window, when event time has passed its end by 1 s, and dropped then: the
categories of a window in rising order of cpu, ties by category, with their rank. Spark sorts a
stream in complete mode only, which keeps every window for ever and writes all of them again in
every batch; so the categories of a window are gathered and sorted as an array. Sums are exact, in
six decimals. MiSA calls it CM1, LMStream CM1S and CM1T; LightSaber's does not sort.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds
from penstock_lab.queries.sliding import DELAY_S, exact, variant, window


def query(*, range_s: int, slide_s: int) -> Query:
    name = variant("cm_category", range_s, slide_s)
    stage = Stage(
        name,
        ("tasks",),
        "starts_at timestamp, rank bigint, category int, cpu decimal(18,6), sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s),
        ranked=("starts_at",),
        watermarks=(Watermark("tasks", "at", DELAY_S * 1_000),),
    )
    return Query(name, "cm_category", (stage,), {"range_s": range_s, "slide_s": slide_s})


def _build(frames: Frames, range_s: int, slide_s: int) -> DataFrame:
    sums = (
        frames["tasks"]
        .withWatermark("at", seconds(DELAY_S))
        .groupBy(window("at", range_s, slide_s), "category")
        .agg(f.sum(exact("cpu", 6)).alias("cpu"), f.max("sent_at").alias("sent_at"))
    )
    gathered = f.collect_list(f.struct("cpu", "category", "sent_at"))
    windows = sums.groupBy("window").agg(f.sort_array(gathered).alias("categories"))
    ranked = windows.select("window", f.posexplode("categories").alias("place", "sum"))
    return ranked.select(
        f.col("window.start").alias("starts_at"),
        (f.col("place") + 1).cast("bigint").alias("rank"),
        *("sum.category", "sum.cpu", "sum.sent_at"),
    )
