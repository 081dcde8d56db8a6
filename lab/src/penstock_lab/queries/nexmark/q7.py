"""NEXMark Q7, highest bid: the highest bids of every window of 10 s.

Append; a window's rows are written once, when event time has passed its end by 4 s. Bids that tie
are all written. As in the reference the window's end is included when bids are looked up, though
not when the highest price is taken: a bid made exactly at the end is written for the window before
its own if it has that window's highest price. An aggregate, and a join of it with the bids; the
join keeps bids for one window beyond the watermark.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds

RANGE_S, DELAY_S = 10, 4


def query() -> Query:
    bids = Watermark("bids", "date_time", DELAY_S * 1_000)
    stage = Stage(
        "q7",
        ("bids",),
        "auction bigint, bidder bigint, price bigint, date_time timestamp, ends_at timestamp, "
        "sent_at timestamp",
        _build,
        watermarks=(bids, bids),
    )
    return Query("q7", "q7", (stage,))


def _build(frames: Frames) -> DataFrame:
    bids = frames["bids"].withWatermark("date_time", seconds(DELAY_S))
    highest = (
        bids.groupBy(f.window("date_time", seconds(RANGE_S)))
        .agg(f.max("price").alias("highest"), f.max("sent_at").alias("closed_by"))
        # The last instant inside the window: the form of its end that Spark keeps a watermark on.
        .select(f.window_time("window").alias("last_at"), "highest", "closed_by")
    )
    ends_at = f.col("last_at") + f.expr("interval 1 microsecond")
    highest_bids = bids.select("auction", "bidder", "price", "date_time", "sent_at").join(
        highest,
        (f.col("price") == f.col("highest"))
        & (f.col("date_time") >= ends_at - f.expr(f"interval {RANGE_S} seconds"))
        & (f.col("date_time") <= ends_at),
    )
    return highest_bids.select(
        "auction",
        "bidder",
        "price",
        "date_time",
        ends_at.alias("ends_at"),
        f.greatest("sent_at", "closed_by").alias("sent_at"),
    )
