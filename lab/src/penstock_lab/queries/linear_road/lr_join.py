"""Linear Road, reports joined to reports of the same vehicle in the window.

Append: a row is written as soon as both reports are there. A row for each ordered pair of reports,
a report and itself included, that are in at least one window together, and one row only, however
many windows they share. State is dropped when event time has passed a report by the range and 1 s;
without a watermark it is kept for ever, and the answer is the same.
zStream calls it LR1, MiSA LR2, LMStream LR1S and LR1T; Saber keeps one row of each vehicle.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds
from penstock_lab.queries.sliding import DELAY_S, variant

SEGMENT_FEET = 5_280


def query(*, range_s: int, slide_s: int, has_watermark: bool = True) -> Query:
    name = variant("lr_join", range_s, slide_s) + ("" if has_watermark else "_kept")
    reports = Watermark("reports", "at", DELAY_S * 1_000)
    stage = Stage(
        name,
        ("reports",),
        "at timestamp, vehicle int, speed float, highway int, lane int, direction int, "
        "segment int, seen_at timestamp, sent_at timestamp",
        lambda frames: _build(frames, range_s, slide_s, has_watermark),
        watermarks=(reports, reports) if has_watermark else (),
    )
    return Query(name, "lr_join", (stage,), {"range_s": range_s, "slide_s": slide_s})


def _build(frames: Frames, range_s: int, slide_s: int, has_watermark: bool) -> DataFrame:
    reports = frames["reports"]
    if has_watermark:
        reports = reports.withWatermark("at", seconds(DELAY_S))
    at_us, slide_us = f.unix_micros("at"), f.lit(slide_s * 1_000_000)
    # The end of the last window a report is in: who reports before it shares that window.
    until = f.timestamp_micros(at_us - at_us % slide_us + range_s * 1_000_000)
    segment = f.floor(f.col("position") / SEGMENT_FEET).cast("int")
    report = reports.select(
        *("at", "vehicle", "speed", "highway", "lane", "direction"),
        segment.alias("segment"),
        until.alias("until"),
        "sent_at",
    )
    seen_report = reports.select(
        f.col("vehicle").alias("seen_vehicle"),
        f.col("at").alias("seen_at"),
        until.alias("seen_until"),
        f.col("sent_at").alias("seen_sent_at"),
    )
    span = f.expr(f"interval {range_s} seconds")
    pairs = report.join(
        seen_report,
        (f.col("vehicle") == f.col("seen_vehicle"))
        & (f.col("at") < f.col("seen_until"))
        & (f.col("seen_at") < f.col("until"))
        # These two follow from the two above; Spark drops state by them.
        & (f.col("at") <= f.col("seen_at") + span)
        & (f.col("at") >= f.col("seen_at") - span),
    )
    return pairs.select(
        *("at", "vehicle", "speed", "highway", "lane", "direction", "segment", "seen_at"),
        f.greatest("sent_at", "seen_sent_at").alias("sent_at"),
    )
