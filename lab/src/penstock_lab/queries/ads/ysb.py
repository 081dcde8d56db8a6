"""Yahoo streaming benchmark: views per campaign and window of 10 s, campaigns looked up in Redis.

Updating by campaign and window, as the original, which overwrites a window's count in Redis every
second; here the counts go to the log. A window is dropped from state when event time has passed its
end by 60 s, the most the original's skewed events are late; later views are dropped. The lookup is
`campaigns.with_campaigns`; the store is filled with each ad's campaign under the ad's id. An ad
that the store does not have fails the query; the original leaves the event out.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries.ads.campaigns import with_campaigns
from penstock_lab.queries.query import Frames, Query, Stage, Watermark, seconds

RANGE_S, DELAY_S = 10, 60
REDIS = "redis://127.0.0.1:6379/0"


def query(*, redis: str = REDIS) -> Query:
    """`redis` is the store's URL, as the workers reach it."""

    def lookup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return with_campaigns(redis, batches)

    def build(frames: Frames) -> DataFrame:
        views = frames["ads"].where(f.col("event_type") == "view")
        with_campaign = views.select("ad_id", "event_time", "sent_at").mapInArrow(
            lookup, "campaign_id string, event_time timestamp, sent_at timestamp"
        )
        return (
            # After the lookup, because a Python operator's output carries no watermark.
            with_campaign.withWatermark("event_time", seconds(DELAY_S))
            .groupBy(f.window("event_time", seconds(RANGE_S)), "campaign_id")
            .agg(f.count("*").alias("views"), f.max("sent_at").alias("sent_at"))
            .select("campaign_id", f.col("window.start").alias("starts_at"), "views", "sent_at")
        )

    stage = Stage(
        "ysb",
        ("ads",),
        "campaign_id string, starts_at timestamp, views bigint, sent_at timestamp",
        build,
        mode="update",
        key=("campaign_id", "starts_at"),
        watermarks=(Watermark("ads", "event_time", DELAY_S * 1_000, "event_type = 'view'"),),
    )
    return Query("ysb", "ysb", (stage,), {"redis": redis})
