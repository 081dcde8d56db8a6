"""NEXMark Q13, bounded side input: every bid with the value its auction has in a fixed table.

Append, without state: the table is a static DataFrame of 10,000 rows i, "i", sent to every task,
and a bid's key in it is its auction modulo the number of rows. Beam takes the bidder modulo 500;
Flink looks the table up as of processing time, which makes no difference for one that is fixed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

SIDE_INPUT_ROWS = 10_000


def query(*, side_input_rows: int = SIDE_INPUT_ROWS) -> Query:
    def build(frames: Frames) -> DataFrame:
        bids = frames["bids"]
        side = bids.sparkSession.range(side_input_rows).select(
            f.col("id").alias("key"), f.col("id").cast("string").alias("value")
        )
        return bids.join(
            f.broadcast(side), f.col("auction") % side_input_rows == f.col("key")
        ).select("auction", "bidder", "price", "date_time", "value", "sent_at")

    columns = (
        "auction bigint, bidder bigint, price bigint, date_time timestamp, value string, "
        "sent_at timestamp"
    )
    stage = Stage("q13", ("bids",), columns, build)
    return Query("q13", "q13", (stage,), {"side_input_rows": side_input_rows})
