"""Cluster monitoring, requested cpu per category, sorted by it, in complete mode.

Complete: every batch writes all windows since the start again, in rising order of cpu, ties by
window and category. There is no watermark, so no window is ever dropped and state grows by the
windows that begin. Spark sorts a stream in this mode only. MiSA's CM1 as its text has it;
`cm_category` is the same answer written once per window.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage
from penstock_lab.queries.sliding import exact, variant, window


def query(*, range_s: int, slide_s: int) -> Query:
    name = f"{variant('cm_category', range_s, slide_s)}_complete"
    stage = Stage(
        name,
        ("tasks",),
        "starts_at timestamp, category int, cpu decimal(18,6), sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s),
        mode="complete",
    )
    parameters = {"range_s": range_s, "slide_s": slide_s}
    return Query(name, "cm_category_complete", (stage,), parameters)


def _build(frames: Frames, range_s: int, slide_s: int) -> DataFrame:
    sums = (
        frames["tasks"]
        .groupBy(window("at", range_s, slide_s), "category")
        .agg(f.sum(exact("cpu", 6)).alias("cpu"), f.max("sent_at").alias("sent_at"))
    )
    return sums.select(
        f.col("window.start").alias("starts_at"), "category", "cpu", "sent_at"
    ).orderBy("cpu", "starts_at", "category")
