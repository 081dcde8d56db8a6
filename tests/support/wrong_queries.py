"""Queries with a mistake in them, which the oracle must find."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from penstock_lab.queries import Frames, Query, named


def q5_without_ties() -> Query:
    """Takes *the* hottest auction of a window, as if there were always one."""
    right = named("q5").stages[0]
    return Query("q5_without_ties", "q5", (replace(right, name="q5_without_ties", build=_hottest),))


def _hottest(frames: Frames) -> DataFrame:
    counted = (
        frames["bids"]
        .withWatermark("date_time", "4 seconds")
        .groupBy(f.window("date_time", "10 seconds", "2 seconds"), "auction")
        .agg(f.count("*").alias("bids"), f.max("sent_at").alias("sent_at"))
    )
    item = f.struct("auction", "bids", "sent_at")
    return (
        counted.groupBy("window")
        .agg(f.max_by(item, "bids").alias("one"))
        .select(
            f.col("window.start").alias("starts_at"), f.col("window.end").alias("ends_at"), "one.*"
        )
    )


ALL: Mapping[str, Callable[..., Query]] = {"q5_without_ties": q5_without_ties}
