"""Yahoo streaming benchmark: views per campaign and window of 10 s, campaigns looked up in Redis.

Updating by campaign and window, as the original, which overwrites a window's count in Redis every
second; here the counts go to the log. A window is dropped from state when event time has passed its
end by 60 s, the most the original's skewed events are late; later views are dropped. The look-up is
`penstock.enrich`; the store is filled with each ad's campaign under the ad's id. An ad that the
store does not have fails the query; the original leaves the event out.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

import penstock
from penstock_lab.queries.query import CACHE_BYTES, Frames, Query, Stage, Watermark, seconds

RANGE_S, DELAY_S = 10, 60
REDIS = "redis://127.0.0.1:6379/0"


def query(
    *,
    redis: str = REDIS,
    cache: str = "timestamp",
    cache_bytes: int = CACHE_BYTES,
    ahead: bool = False,
) -> Query:
    """The query with the store's URL, as the workers reach it.

    `cache` and `cache_bytes` are those of `penstock.enrich`; `ahead` reads views that still wait in
    the log, for their campaigns.
    """

    def build(frames: Frames) -> DataFrame:
        views = frames["ads"].where(f.col("event_type") == "view")
        with_campaign = penstock.enrich(
            views.select("ad_id", "event_time", "sent_at"),
            penstock.Redis(redis, "campaign_id string"),
            on="ad_id",
            missing="error",
            cache=cache,
            cache_bytes=cache_bytes,
            time="event_time",
            ahead=ahead and penstock.Ahead(rows=views_of),
            name="ysb",
        )
        return (
            # After the look-up, because a Python operator's output carries no watermark.
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
        lookup="ysb",
    )
    return Query("ysb", "ysb", (stage,), {"redis": redis})


def views_of(ads: pa.RecordBatch) -> pa.RecordBatch:
    """The ad events that the query looks campaigns up for, as they are read ahead."""
    return ads.filter(pc.equal(ads.column("event_type"), "view"))
