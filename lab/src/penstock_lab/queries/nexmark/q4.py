"""NEXMark Q4, average price by category: the mean, over auctions, of the highest bid on each.

Two stages, because one query cannot aggregate an aggregate in update mode. `q4_changes` (update,
its rows are changes: all of them count) writes, for every auction whose highest bid has changed in
a batch, by how much, and whether it is the auction's first. `q4` (updating by category) sums both
up and divides. The first keeps an auction until event time has passed its end; the second keeps a
row per category, of which there are five.

The mean is a double; Flink's is a whole number and RisingWave's a decimal. Auctions count from
their first bid on, not only when they have closed: Beam's query of this name counts closed ones
whose reserve was met, in a sliding window.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.nexmark.auction_state import WATERMARKS, per_auction
from penstock_lab.queries.nexmark.bidding import Bidding
from penstock_lab.queries.query import Frames, Query, Stage

COLUMNS = "auction bigint, category bigint, price_change bigint, auctions_change bigint"


def query() -> Query:
    changes = Stage(
        "q4_changes",
        ("auctions", "bids"),
        f"{COLUMNS}, sent_at timestamp",
        _changes,
        mode="update",
        watermarks=WATERMARKS,
    )
    averages = Stage(
        "q4",
        ("q4_changes",),
        "category bigint, average double, sent_at timestamp",
        _averages,
        mode="update",
        key=("category",),
    )
    return Query("q4", "q4", (changes, averages))


def _changes(frames: Frames) -> DataFrame:
    made = per_auction(frames, _change, f"{COLUMNS}, sent_us bigint", "update")
    return made.withColumn("sent_at", f.timestamp_micros("sent_us")).drop("sent_us")


def _change(auction: int, kept: Bidding, now: Bidding, is_over: bool) -> dict[str, int] | None:
    if now.price == kept.price:
        return None
    return {
        "auction": auction,
        "category": now.category,
        "price_change": now.price - kept.price,
        "auctions_change": 0 if kept.price else 1,
        "sent_us": now.sent_us,
    }


def _averages(frames: Frames) -> DataFrame:
    total, auctions = f.sum("price_change"), f.sum("auctions_change")
    return (
        frames["q4_changes"]
        .groupBy("category")
        .agg(
            (total.cast("double") / auctions.cast("double")).alias("average"),
            f.max("sent_at").alias("sent_at"),
        )
    )
