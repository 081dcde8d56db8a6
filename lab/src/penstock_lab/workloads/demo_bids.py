"""Bids on auctions, each computed from the seed and its own number and from nothing else.

So any slice of the sequence can be made anywhere, in any order and any number of times, and is the
same: a run can be repeated, continued, and checked against rows made afresh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.errors import BadCall
from penstock_lab.percentiles import Numbers

BIDS_DDL = "auction bigint, bidder bigint, price bigint, at timestamp, sent_at timestamp"
STAMP = pa.timestamp("us", "UTC")
BIDS = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("at", STAMP),
        ("sent_at", STAMP),
    ]
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DRAWS = np.uint64(4)
_IS_HOT, _AUCTION, _BIDDER, _PRICE = (np.uint64(draw) for draw in range(4))


@dataclass(frozen=True)
class Auctions:
    """How the bids are spread; two equal values give equal rows."""

    seed: int = 7
    auctions: int = 1_000
    bidders: int = 10_000
    first_id: int = 1_000
    hot_share: float = 0.5
    hot_every: int = 1_667
    """Bids between two changes of the hot auction."""
    origin_us: int = 1_767_225_600_000_000
    """Event time of bid 0, in microseconds since the epoch."""
    spacing_us: int = 500
    """Event time between two bids, in microseconds."""

    def __post_init__(self) -> None:
        counts = (self.auctions, self.bidders, self.hot_every, self.spacing_us)
        if min(counts) < 1 or not 0 <= self.hot_share <= 1 or self.seed < 0:
            raise BadCall(
                f"{self} cannot be generated: counts are at least 1, a share is 0 to 1, a seed is "
                "not negative",
                code="bad_request",
            )


def bids(plan: Auctions, first: int, count: int, sent_at_us: int | Numbers = 0) -> pa.RecordBatch:
    """Bids `first` to `first + count - 1`; `sent_at` is the caller's, one for all or one each."""
    n = np.arange(first, first + count, dtype=np.uint64)
    is_hot = _unit(plan.seed, n, _IS_HOT) < plan.hot_share
    anyone = _below(plan.seed, n, _AUCTION, plan.auctions)
    # The hot auction of a stretch of bids is drawn from the number of the stretch, with a seed of
    # its own, so that it does not depend on where the caller's slice begins.
    hot = _below(plan.seed + 1, n // np.uint64(plan.hot_every), _AUCTION, plan.auctions)
    auction = np.where(is_hot, hot, anyone) + plan.first_id
    bidder = _below(plan.seed, n, _BIDDER, plan.bidders) + plan.first_id
    price = np.rint(10.0 ** (6.0 * _unit(plan.seed, n, _PRICE)) * 100.0).astype(np.int64)
    at = plan.origin_us + n.astype(np.int64) * plan.spacing_us
    sent_at = np.broadcast_to(np.asarray(sent_at_us, np.int64), (count,))
    return pa.RecordBatch.from_arrays(
        [
            pa.array(auction),
            pa.array(bidder),
            pa.array(price),
            pa.array(at).cast(STAMP),
            pa.array(sent_at).cast(STAMP),
        ],
        schema=BIDS,
    )


def stamped(batch: pa.RecordBatch, sent_at_us: int) -> pa.RecordBatch:
    """The same bids with another intended send time."""
    column = pa.array(np.full(batch.num_rows, sent_at_us, np.int64)).cast(STAMP)
    return batch.set_column(batch.schema.get_field_index("sent_at"), "sent_at", column)


def _draw(seed: int, n: Numbers, draw: np.uint64) -> Numbers:
    """64 random bits for each number: SplitMix64, entered at the place the number names."""
    with np.errstate(over="ignore"):
        start = _mixed(np.asarray([seed], np.uint64) * _GOLDEN)
        return _mixed(start + (n * _DRAWS + draw + np.uint64(1)) * _GOLDEN)


def _mixed(state: Numbers) -> Numbers:
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(state ^ (state >> np.uint64(31)))


def _unit(seed: int, n: Numbers, draw: np.uint64) -> Numbers:
    """Uniform in [0, 1), 53 bits."""
    return np.asarray((_draw(seed, n, draw) >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _below(seed: int, n: Numbers, draw: np.uint64, bound: int) -> Numbers:
    """Uniform whole numbers in [0, bound)."""
    return np.asarray(_unit(seed, n, draw) * bound).astype(np.int64)
