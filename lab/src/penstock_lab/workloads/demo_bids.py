"""The demo's bids, each computed from the seed and its own number and from nothing else.

So any slice of the sequence can be made anywhere, in any order and any number of times, and is the
same: a run can be repeated, continued, and checked against rows made afresh.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.errors import BadCall
from penstock_lab.percentiles import Numbers
from penstock_lab.workloads.seeded import STAMP, stamps

DEMO_BIDS = pa.schema(
    [("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("at", STAMP)]
)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DRAWS = np.uint64(4)
_IS_HOT, _AUCTION, _BIDDER, _PRICE = (np.uint64(draw) for draw in range(4))


@dataclass(frozen=True)
class DemoBidsOptions:
    """The spread of the bids; two equal values and equal seeds give equal rows."""

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
        if min(counts) < 1 or not 0 <= self.hot_share <= 1:
            raise BadCall(
                f"{self} cannot be generated: counts are at least 1, a share is 0 to 1",
                code="bad_request",
            )


class DemoBids:
    """Bids numbered from 0: half of them on any auction, half on the auction that is hot then."""

    schema = DEMO_BIDS

    def __init__(self, options: DemoBidsOptions | None = None, seed: int = 7) -> None:
        if seed < 0:
            raise BadCall(
                f"bids cannot be generated from the seed {seed}; give 0 or more",
                code="bad_request",
            )
        self.options = options or DemoBidsOptions()
        self.seed = seed

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Bids `first` to `first + count - 1`."""
        options, seed = self.options, self.seed
        n = np.arange(first, first + count, dtype=np.uint64)
        is_hot = _unit(seed, n, _IS_HOT) < options.hot_share
        any_auction = _below(seed, n, _AUCTION, options.auctions)
        # The hot auction of a stretch of bids is drawn from the number of the stretch, with a seed
        # of its own, so that it does not depend on where the caller's slice begins.
        stretch = n // np.uint64(options.hot_every)
        hot_auction = _below(seed + 1, stretch, _AUCTION, options.auctions)
        auction = np.where(is_hot, hot_auction, any_auction) + options.first_id
        bidder = _below(seed, n, _BIDDER, options.bidders) + options.first_id
        price = np.rint(10.0 ** (6.0 * _unit(seed, n, _PRICE)) * 100.0).astype(np.int64)
        at_us = options.origin_us + n.astype(np.int64) * options.spacing_us
        return pa.RecordBatch.from_arrays(
            [pa.array(auction), pa.array(bidder), pa.array(price), stamps(at_us)],
            schema=DEMO_BIDS,
        )


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
