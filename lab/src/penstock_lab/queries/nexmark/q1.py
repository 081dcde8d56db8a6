"""NEXMark Q1, currency: every bid with its price in euros.

Append, without state. The price is `0.908 * price` as DECIMAL(23, 3), as in the Flink version;
Beam multiplies whole numbers by 89/100.
"""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

EUROS_PER_DOLLAR = Decimal("0.908")


def query() -> Query:
    columns = (
        "auction bigint, bidder bigint, price decimal(23,3), date_time timestamp, sent_at timestamp"
    )
    return Query("q1", "q1", (Stage("q1", ("bids",), columns, _build),))


def _build(frames: Frames) -> DataFrame:
    price = (f.col("price") * f.lit(EUROS_PER_DOLLAR)).cast("decimal(23,3)")
    return frames["bids"].select("auction", "bidder", price.alias("price"), "date_time", "sent_at")
