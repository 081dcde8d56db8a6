"""NEXMark Q6, average selling price by seller: over the seller's last auctions.

Two stages. `q6_winners` (append) writes an auction's highest bid once, when event time has passed
the auction's end, and forgets it; of equal bids the earlier wins, and an auction without bids is
not written. `q6` (updating by seller) keeps the seller's last eleven winners in the order of their
bids, ties by auction, and averages them: the reference's frame is ten preceding rows plus the
current one, though it says ten. Its state grows with the sellers, as the query's does.

The reference has a row for every winner as the current one; here a later row replaces the earlier
one. RisingWave's case takes the *lowest* bid as the winner: `lowest`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.nexmark.auction_state import WATERMARKS, per_auction
from penstock_lab.queries.nexmark.bidding import Bidding
from penstock_lab.queries.query import Frames, Query, Stage

FRAME_ROWS = 11


def query(*, lowest: bool = False) -> Query:
    winners = Stage(
        "q6_winners",
        ("auctions", "bids"),
        "auction bigint, seller bigint, price bigint, date_time timestamp, sent_at timestamp",
        lambda frames: _winners(frames, lowest),
        watermarks=WATERMARKS,
    )
    averages = Stage(
        "q6",
        ("q6_winners",),
        "seller bigint, average double, sent_at timestamp",
        _averages,
        mode="update",
        key=("seller",),
    )
    return Query("q6", "q6", (winners, averages), {"lowest": lowest})


def _winners(frames: Frames, lowest: bool) -> DataFrame:
    columns = "auction bigint, seller bigint, price bigint, at_us bigint, sent_us bigint"
    made = per_auction(frames, _winner, columns, "append", lowest=lowest)
    return made.select(
        "auction",
        "seller",
        "price",
        f.timestamp_micros("at_us").alias("date_time"),
        f.timestamp_micros("sent_us").alias("sent_at"),
    )


def _winner(auction: int, kept: Bidding, now: Bidding, is_over: bool) -> dict[str, int] | None:
    if not (is_over and now.is_open and now.price):
        return None
    return {
        "auction": auction,
        "seller": now.seller,
        "price": now.price,
        "at_us": now.at_us,
        "sent_us": now.sent_us,
    }


def _averages(frames: Frames) -> DataFrame:
    winner, order = f.struct("price", "sent_at"), f.struct("date_time", "auction")
    kept = (
        frames["q6_winners"]
        .groupBy("seller")
        .agg(f.max_by(winner, order, FRAME_ROWS).alias("last"))
    )
    total = f.aggregate("last", f.lit(0).cast("bigint"), lambda sum, sold: sum + sold["price"])
    return kept.select(
        "seller",
        (total.cast("double") / f.size("last").cast("double")).alias("average"),
        f.array_max(f.col("last.sent_at")).alias("sent_at"),
    )
