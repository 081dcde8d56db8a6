"""Auctions and bids brought together by auction, as one stateful operator of PySpark.

Spark allows several stateful operators in one query in append mode only, and none of its built-in
ones gives the change of a maximum, or closes a group at a time that is a column. So Q4 and Q6 begin
with `applyInPandasWithState`; what it keeps and decides is in `bidding`. State is dropped by
event-time timeout, once no row can change it any more. Needs pandas on the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from penstock_lab.queries.nexmark.bidding import STATE, Bidding, Event, after
from penstock_lab.queries.query import Frames, Mode, Watermark, seconds

if TYPE_CHECKING:
    import pandas as pd

DELAY_S = 4
WATERMARKS = tuple(
    Watermark(stream, "date_time", DELAY_S * 1_000) for stream in ("auctions", "bids")
)
Emit: TypeAlias = Callable[[int, Bidding, Bidding, bool], dict[str, int] | None]
"""What to write for an auction: its id, what was known, what is known, and whether it is over."""


def per_auction(
    frames: Frames, emit: Emit, columns: str, mode: Mode, *, lowest: bool = False
) -> DataFrame:
    """At most one row per auction and batch: what `emit` makes of the change.

    Times are whole microseconds, in and out: pandas would shift them by the session's time zone.
    """

    def step(
        key: tuple[int], pieces: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        kept = Bidding(*state.get) if state.exists else Bidding()
        if state.hasTimedOut:
            now, is_over = kept, True
            state.remove()
        else:
            events = (
                Event(*row)
                for piece in pieces
                for row in zip(*(piece[name].tolist() for name in Event._fields), strict=True)
            )
            now = after(kept, events, lowest=lowest)
            passed_ms = state.getCurrentWatermarkMs()
            # Spark times nobody out who has rows, and bids may go on after the end.
            is_over = now.is_open and passed_ms > now.settled_ms
            if is_over:
                state.remove()
            else:
                state.update(now)
                # A time that has passed is refused; a bid may be older than the watermark.
                state.setTimeoutTimestamp(max(now.settled_ms, passed_ms + 1))
        row = emit(key[0], kept, now, is_over)
        if row is not None:
            yield pd.DataFrame([row])

    rows = _auctions(frames["auctions"]).unionByName(_bids(frames["bids"]))
    return rows.groupBy("auction").applyInPandasWithState(
        step, columns, STATE, mode, GroupStateTimeout.EventTimeTimeout
    )


def _auctions(auctions: DataFrame) -> DataFrame:
    return auctions.withWatermark("date_time", seconds(DELAY_S)).select(
        f.col("id").alias("auction"),
        f.lit(True).alias("is_auction"),
        "category",
        "seller",
        f.unix_micros("expires").alias("expires_us"),
        f.lit(0).cast("bigint").alias("price"),
        f.unix_micros("date_time").alias("at_us"),
        f.unix_micros("sent_at").alias("sent_us"),
        "date_time",
    )


def _bids(bids: DataFrame) -> DataFrame:
    nothing = f.lit(0).cast("bigint")
    return bids.withWatermark("date_time", seconds(DELAY_S)).select(
        "auction",
        f.lit(False).alias("is_auction"),
        nothing.alias("category"),
        nothing.alias("seller"),
        nothing.alias("expires_us"),
        "price",
        f.unix_micros("date_time").alias("at_us"),
        f.unix_micros("sent_at").alias("sent_us"),
        "date_time",
    )
