"""NEXMark Q8, new users: persons who joined and opened an auction in the same window of 10 s.

Append; written once per person, when event time has passed the window's end by 4 s in both
streams, and dropped from state then. Persons and sellers of a window are made distinct first, then
joined: three stateful operators in one query. Beam writes a row per auction.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds

RANGE_S, DELAY_S = 10, 4


def query() -> Query:
    stage = Stage(
        "q8",
        ("persons", "auctions"),
        "id bigint, name string, starts_at timestamp, sent_at timestamp",
        _build,
        watermarks=tuple(
            Watermark(stream, "date_time", DELAY_S * 1_000) for stream in ("persons", "auctions")
        ),
    )
    return Query("q8", "q8", (stage,))


def _build(frames: Frames) -> DataFrame:
    window = f.window("date_time", seconds(RANGE_S))
    joined = (
        frames["persons"]
        .withWatermark("date_time", seconds(DELAY_S))
        .groupBy(window.alias("window"), "id", "name")
        .agg(f.max("sent_at").alias("joined_at"))
    )
    sold = (
        frames["auctions"]
        .withWatermark("date_time", seconds(DELAY_S))
        .groupBy(window.alias("window"), f.col("seller").alias("id"))
        .agg(f.max("sent_at").alias("sold_at"))
    )
    return joined.join(sold, ["window", "id"]).select(
        "id",
        "name",
        f.col("window.start").alias("starts_at"),
        f.greatest("joined_at", "sold_at").alias("sent_at"),
    )
