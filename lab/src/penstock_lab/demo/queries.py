"""The demo's two queries, chained: `category_leaders`, a query of two stages.

`auction_totals` keeps count, sum and maximum of the bids on each auction; `category_leaders` reads
its results and keeps the highest bid of each category. Both are in update mode, and a later row of
a key replaces the earlier one. What they should write is said in `oracle.answers.demo`.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries import Frames, Query, Stage

BIDS = "bids"
CATEGORIES = 10


def query() -> Query:
    totals = Stage(
        "auction_totals",
        (BIDS,),
        "auction bigint, bids bigint, total bigint, highest bigint, sent_at timestamp",
        _auction_totals,
        mode="update",
        key=("auction",),
    )
    leaders = Stage(
        "category_leaders",
        ("auction_totals",),
        "category bigint, highest bigint, sent_at timestamp",
        _category_leaders,
        mode="update",
        key=("category",),
    )
    name = leaders.name
    return Query(name, name, (totals, leaders), {"categories": CATEGORIES})


def _auction_totals(frames: Frames) -> DataFrame:
    return (
        frames[BIDS]
        .groupBy("auction")
        .agg(
            f.count("*").alias("bids"),
            f.sum("price").alias("total"),
            f.max("price").alias("highest"),
            f.max("sent_at").alias("sent_at"),
        )
    )


def _category_leaders(frames: Frames) -> DataFrame:
    category = (f.col("auction") % CATEGORIES).alias("category")
    return (
        frames["auction_totals"]
        .groupBy(category)
        .agg(f.max("highest").alias("highest"), f.max("sent_at").alias("sent_at"))
    )
