"""NEXMark Q5, hot items: the auctions with the most bids in each window of 10 s, every 2 s.

Append; a window's rows are written once, when event time has passed its end by 4 s, and its state
is dropped then. Auctions that tie are all written. The first windows begin before the first bid,
since each bid is in five. Beam slides by 5 s. Two aggregates in one query: bids per window and
auction, then the auctions of a window, of which the highest are kept.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds

RANGE_S, SLIDE_S, DELAY_S = 10, 2, 4


def query() -> Query:
    stage = Stage(
        "q5",
        ("bids",),
        "starts_at timestamp, ends_at timestamp, auction bigint, bids bigint, sent_at timestamp",
        _build,
        watermarks=(Watermark("bids", "date_time", DELAY_S * 1_000),),
    )
    return Query("q5", "q5", (stage,))


def _build(frames: Frames) -> DataFrame:
    counted = (
        frames["bids"]
        .withWatermark("date_time", seconds(DELAY_S))
        .groupBy(f.window("date_time", seconds(RANGE_S), seconds(SLIDE_S)), "auction")
        .agg(f.count("*").alias("bids"), f.max("sent_at").alias("sent_at"))
    )
    hits = f.struct("auction", "bids", "sent_at")
    windows = counted.groupBy("window").agg(
        f.max("bids").alias("most"), f.collect_list(hits).alias("auctions")
    )
    hottest = f.filter("auctions", lambda hit: hit["bids"] >= f.col("most"))
    return windows.select(
        f.col("window.start").alias("starts_at"),
        f.col("window.end").alias("ends_at"),
        f.inline(hottest).alias("auction", "bids", "sent_at"),
    )
