"""Linear Road, congested segments: mean speed per highway, direction and segment, below 40.

Append; written once per window, when event time has passed its end by 1 s, and dropped then. The
mean is the exact sum of speeds (four decimals) over their number, as a double. zStream calls it
LR2, LMStream LR2S; LightSaber's LRB1 has a range of 300 s.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds
from penstock_lab.queries.sliding import DELAY_S, exact, variant, window

SEGMENT_FEET = 5_280
CONGESTED_BELOW = 40.0


def query(*, range_s: int, slide_s: int) -> Query:
    name = variant("lr_speed", range_s, slide_s)
    stage = Stage(
        name,
        ("reports",),
        "starts_at timestamp, highway int, direction int, segment int, speed double, "
        "sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s),
        watermarks=(Watermark("reports", "at", DELAY_S * 1_000),),
    )
    return Query(name, "lr_speed", (stage,), {"range_s": range_s, "slide_s": slide_s})


def _build(frames: Frames, range_s: int, slide_s: int) -> DataFrame:
    segment = f.floor(f.col("position") / SEGMENT_FEET).cast("int").alias("segment")
    mean = f.sum(exact("speed", 4)).cast("double") / f.count("*").cast("double")
    means = (
        frames["reports"]
        .withWatermark("at", seconds(DELAY_S))
        .groupBy(window("at", range_s, slide_s), "highway", "direction", segment)
        .agg(mean.alias("speed"), f.max("sent_at").alias("sent_at"))
    )
    return means.where(f.col("speed") < CONGESTED_BELOW).select(
        f.col("window.start").alias("starts_at"),
        *("highway", "direction", "segment", "speed", "sent_at"),
    )
