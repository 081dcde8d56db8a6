"""The generator: what a row depends on, and what the rows look like together."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import BadCall
from penstock_lab.workloads.demo_bids import DEMO_BIDS, DemoBids, DemoBidsOptions

MANY = 60_000
KNOWN = [
    {"auction": 1394, "bidder": 8187, "price": 11306598},
    {"auction": 1407, "bidder": 8324, "price": 146165},
    {"auction": 1621, "bidder": 6940, "price": 229},
]


def test_a_bid_depends_on_the_seed_and_its_own_number_only() -> None:
    whole = DemoBids(seed=7).events(0, 5_000)
    pieces = [DemoBids(seed=7).events(first, 500) for first in range(4_500, -1, -500)]
    assert (
        pa.Table.from_batches(pieces[::-1])
        .combine_chunks()
        .equals(pa.Table.from_batches([whole]).combine_chunks())
    )


def test_another_seed_gives_other_bids() -> None:
    assert not DemoBids(seed=7).events(0, 100).equals(DemoBids(seed=8).events(0, 100))


def test_a_bid_of_a_known_seed_never_changes() -> None:
    first = DemoBids(seed=7).events(0, 3).select(["auction", "bidder", "price"]).to_pylist()
    assert first == KNOWN


def test_half_of_the_bids_are_on_one_auction_at_a_time() -> None:
    hot_every, made = DemoBidsOptions().hot_every, DemoBids(seed=3)
    stretch = made.events(0, hot_every)["auction"].to_numpy()
    _, counts = np.unique(stretch, return_counts=True)
    assert 0.45 < counts.max() / len(stretch) < 0.55


def test_the_hot_auction_moves() -> None:
    hot_every, made = DemoBidsOptions().hot_every, DemoBids(seed=3)
    hottest = {
        int(np.bincount(made.events(n * hot_every, hot_every)["auction"]).argmax())
        for n in range(10)
    }
    assert len(hottest) > 5


def test_prices_are_spread_evenly_over_their_orders_of_magnitude() -> None:
    price = DemoBids().events(0, MANY)["price"].to_numpy()
    assert price.min() >= 100
    assert price.max() <= 10**8
    per_decade, _ = np.histogram(np.log10(price), bins=6, range=(2, 8))
    assert per_decade.min() > 0.9 * MANY / 6


def test_ids_stay_within_what_was_asked_for() -> None:
    rows = DemoBids(DemoBidsOptions(auctions=10, bidders=5)).events(0, 2_000)
    assert pc.min_max(rows["auction"]).as_py() == {"min": 1_000, "max": 1_009}
    assert pc.min_max(rows["bidder"]).as_py() == {"min": 1_000, "max": 1_004}


def test_the_event_time_follows_the_number() -> None:
    made = DemoBids().events(10, 4)
    assert made["at"].cast(pa.int64()).to_pylist() == [
        DemoBidsOptions().origin_us + n * 500 for n in range(10, 14)
    ]


def test_the_columns_are_those_of_the_stream() -> None:
    assert DemoBids().events(0, 0).schema == DEMO_BIDS == DemoBids.schema


@pytest.mark.parametrize("wrong", [{"auctions": 0}, {"hot_share": 1.5}])
def test_options_that_cannot_be_generated_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(BadCall, match="cannot be generated"):
        DemoBidsOptions(**wrong)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadCall, match="cannot be generated from the seed -1"):
        DemoBids(seed=-1)
