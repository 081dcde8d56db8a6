"""NEXMark Q3, local items: who sells items of category 10 in three states, and which.

Append: one row for each auction and its seller, whichever came first. State is unbounded on both
sides, because the query has no time in it: a person may open an auction at any later time.
RisingWave writes states in lower case; `states` says which to keep.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage

CATEGORY = 10
STATES = ("OR", "ID", "CA")


def query(*, states: Sequence[str] = STATES) -> Query:
    def build(frames: Frames) -> DataFrame:
        persons = frames["persons"].where(f.col("state").isin(list(states)))
        auctions = frames["auctions"].where(f.col("category") == CATEGORY)
        sold = auctions.select("seller", f.col("id").alias("auction"), "sent_at")
        sellers = persons.select("id", "name", "city", "state", f.col("sent_at").alias("known_at"))
        return sold.join(sellers, f.col("seller") == f.col("id")).select(
            "name", "city", "state", "auction", f.greatest("sent_at", "known_at").alias("sent_at")
        )

    columns = "name string, city string, state string, auction bigint, sent_at timestamp"
    stage = Stage("q3", ("auctions", "persons"), columns, build)
    return Query("q3", "q3", (stage,), {"states": tuple(states)})
