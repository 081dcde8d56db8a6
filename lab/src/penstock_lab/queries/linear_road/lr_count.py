"""Linear Road, vehicles per highway, direction and segment.

Append; written once per window, when event time has passed its end by 1 s, and dropped then. Every
vehicle counts once per segment, however often it reported: two aggregates in one query, as in
LightSaber's LRB2. zStream calls it LR3, MiSA LR4.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds
from penstock_lab.queries.sliding import DELAY_S, variant, window

SEGMENT_FEET = 5_280
PLACE = ("window", "highway", "direction", "segment")


def query(*, range_s: int, slide_s: int) -> Query:
    name = variant("lr_count", range_s, slide_s)
    stage = Stage(
        name,
        ("reports",),
        "starts_at timestamp, highway int, direction int, segment int, vehicles bigint, "
        "sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s),
        watermarks=(Watermark("reports", "at", DELAY_S * 1_000),),
    )
    return Query(name, "lr_count", (stage,), {"range_s": range_s, "slide_s": slide_s})


def _build(frames: Frames, range_s: int, slide_s: int) -> DataFrame:
    segment = f.floor(f.col("position") / SEGMENT_FEET).cast("int").alias("segment")
    vehicles = (
        frames["reports"]
        .withWatermark("at", seconds(DELAY_S))
        .groupBy(window("at", range_s, slide_s), "highway", "direction", segment, "vehicle")
        .agg(f.max("sent_at").alias("sent_at"))
    )
    counts = vehicles.groupBy(*PLACE).agg(
        f.count("*").alias("vehicles"), f.max("sent_at").alias("sent_at")
    )
    return counts.select(
        f.col("window.start").alias("starts_at"),
        *("highway", "direction", "segment", "vehicles", "sent_at"),
    )
