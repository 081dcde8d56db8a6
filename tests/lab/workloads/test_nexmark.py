"""NEXMark: proportions, ids, skew, sizes and order of what is generated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock_lab.workloads.nexmark import (
    AUCTIONS,
    BIDS,
    PERSONS,
    SIDE_INPUT,
    Events,
    Nexmark,
    NexmarkOptions,
    large_state,
)
from penstock_lab.workloads.nexmark.order import newest_auction, newest_person, shuffled
from penstock_lab.workloads.nexmark.persons import CITIES, STATES
from penstock_lab.workloads.seeded import EVENTS_MAX
from support.ranges import COUNTS, FIRSTS, cut_in_two, fingerprint, whole

MANY = 200_000
LATE = 10_000_000
FINGERPRINTS = ["8e8817a25681", "ab8e05d59b56", "71633a97e889"]


@cache
def plain() -> Nexmark:
    return Nexmark()


@cache
def in_groups() -> Nexmark:
    return Nexmark(NexmarkOptions(out_of_order_group=120), seed=3)


@cache
def early() -> Events:
    return plain().events(0, MANY)


@cache
def later() -> Events:
    return plain().events(LATE, MANY)


def values(rows: pa.RecordBatch, name: str) -> Any:
    column = rows.column(name)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.to_numpy(zero_copy_only=False)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([plain, in_groups]), FIRSTS, COUNTS, st.integers(0, 300))
def test_a_range_is_the_same_however_it_is_cut(
    made: Callable[[], Nexmark], first: int, count: int, at: int
) -> None:
    for kind in Events._fields:

        def events(first: int, count: int, kind: str = kind) -> pa.RecordBatch:
            return getattr(made().events(first, count), kind)

        assert cut_in_two(events, first, count, at).equals(whole(events, first, count))


def test_another_seed_gives_other_events_of_the_same_kinds() -> None:
    mine, other = plain().events(0, 500), Nexmark(seed=8).events(0, 500)
    assert [rows.num_rows for rows in mine] == [rows.num_rows for rows in other] == [10, 30, 460]
    assert not mine.bids.equals(other.bids)


def test_events_made_once_can_be_made_again_by_later_versions() -> None:
    assert [fingerprint(rows) for rows in plain().events(1_000, 1_000)] == FINGERPRINTS


def test_the_streams_have_their_columns() -> None:
    assert [rows.schema for rows in early()] == [PERSONS, AUCTIONS, BIDS]
    assert all(column.null_count == 0 for rows in early() for column in rows.columns)


def test_one_in_fifty_is_a_person_and_three_are_auctions() -> None:
    assert [rows.num_rows for rows in early()] == [MANY // 50, MANY * 3 // 50, MANY * 46 // 50]
    assert [rows.num_rows for rows in plain().events(0, 5)] == [1, 3, 1]


def test_ids_count_up_from_a_thousand() -> None:
    assert values(early().persons, "id").tolist() == list(range(1_000, 1_000 + MANY // 50))
    assert values(early().auctions, "id").tolist() == list(range(1_000, 1_000 + MANY * 3 // 50))


def test_the_newest_ids_are_those_of_the_events_so_far() -> None:
    event = np.arange(200, dtype=np.int64)
    place = event % 50
    assert newest_person(event).tolist() == (np.cumsum(place == 0) - 1).tolist()
    assert newest_auction(event).tolist() == (np.cumsum((place > 0) & (place < 4)) - 1).tolist()


def test_event_time_is_a_function_of_the_rate() -> None:
    times = values(early().persons, "date_time")
    assert times[0] == 1_436_918_400_000_000
    assert np.all(np.diff(times) == 50 * 100)
    slow = Nexmark(NexmarkOptions(rate=100, base_time_ms=0)).events(0, 1_000)
    assert values(slow.bids, "date_time")[-1] == 999 * 10_000


def test_half_of_the_bids_go_to_the_hot_auction_of_their_time() -> None:
    event = plain().row_numbers(LATE, MANY).bids
    hot = newest_auction(event) // 100 * 100 + 1_000
    # A cold bid meets the hot auction too, once in about 110 times.
    share = np.mean(values(later().bids, "auction") == hot)
    assert abs(share - 0.505) < 0.005
    assert abs(MANY / len(np.unique(hot)) - 1_667) < 30


def test_three_quarters_of_bids_and_auctions_are_by_the_hot_persons_of_their_time() -> None:
    numbers = plain().row_numbers(LATE, MANY)
    bidder = newest_person(numbers.bids) // 100 * 100 + 1_001
    seller = newest_person(numbers.auctions) // 100 * 100 + 1_000
    assert abs(np.mean(values(later().bids, "bidder") == bidder) - 0.75) < 0.005
    assert abs(np.mean(values(later().auctions, "seller") == seller) - 0.75) < 0.015
    assert len(np.unique(bidder)) == MANY // 5_000


def test_cold_bids_go_to_the_auctions_in_flight_and_some_precede_theirs() -> None:
    event = plain().row_numbers(LATE, MANY).bids
    ahead = values(later().bids, "auction") - 1_000 - newest_auction(event)
    assert ahead.max() == 10
    assert ahead.min() == -100
    assert 0.03 < np.mean(ahead > 0) < 0.06


def test_persons_named_are_the_active_ones_and_the_next_few() -> None:
    numbers = plain().row_numbers(LATE, MANY)
    for name, event, rows in (
        ("bidder", numbers.bids, later().bids),
        ("seller", numbers.auctions, later().auctions),
    ):
        ahead = values(rows, name) - 1_000 - newest_person(event)
        assert ahead.max() <= 10
        assert -1_000 < ahead.min() < -950


def test_prices_are_spread_evenly_in_their_logarithm() -> None:
    prices = values(early().bids, "price")
    assert prices.min() >= 100
    assert prices.max() <= 100_000_000
    by_decade = np.histogram(np.log10(prices), bins=np.arange(2, 8.5))[0] / len(prices)
    assert np.all(np.abs(by_decade - 1 / 6) < 0.005)


def test_the_reserve_is_a_price_above_the_first_bid() -> None:
    assert np.all(
        values(early().auctions, "reserve") - values(early().auctions, "initial_bid") > 99
    )


def test_auctions_last_up_to_twice_the_time_of_a_hundred_auctions() -> None:
    # At 10,000 events/s a hundred auctions take 166 ms.
    lasts = values(early().auctions, "expires") - values(early().auctions, "date_time")
    assert lasts.min() == 1_000
    assert 330_000 <= lasts.max() <= 334_000


def test_categories_states_and_cities_are_even() -> None:
    for column, expected in (
        (early().auctions.column("category"), range(10, 15)),
        (early().persons.column("state"), STATES),
        (early().persons.column("city"), CITIES),
    ):
        shares = Counter(column.to_pylist())
        assert set(shares) == set(expected)
        assert min(shares.values()) > 0.8 * len(column) / len(shares)


def test_rows_have_the_mean_size_they_should() -> None:
    def text_bytes(rows: pa.RecordBatch, *names: str) -> float:
        return sum(float(pc.mean(pc.binary_length(rows.column(name))).as_py()) for name in names)

    persons, auctions, bids = early()
    person_texts = ("name", "email_address", "credit_card", "city", "state", "extra")
    assert abs(8 + text_bytes(persons, *person_texts) - 200) < 2
    assert abs(48 + text_bytes(auctions, "item_name", "description", "extra") - 500) < 3
    assert abs(32 + text_bytes(bids, "extra") - 100) < 1
    padding = pc.min_max(pc.binary_length(bids.column("extra"))).as_py()
    assert padding == {"min": 68 - 14, "max": 68 + 13}


def test_a_row_larger_than_its_size_has_no_padding() -> None:
    small = Nexmark(NexmarkOptions(bid_bytes=20, person_bytes=0)).events(0, 500)
    assert set(small.bids.column("extra").to_pylist()) == {""}
    assert set(small.persons.column("extra").to_pylist()) == {""}


def test_texts_read_as_in_the_reference() -> None:
    persons, auctions, bids = early()

    def all_match(rows: pa.RecordBatch, name: str, pattern: str) -> bool:
        return bool(pc.all(pc.match_substring_regex(rows.column(name), pattern)).as_py())

    assert all_match(persons, "name", "^[A-Z][a-z]+ [A-Z][a-z]+$")
    assert all_match(persons, "email_address", "^[a-z]{3,6}@[a-z]{3,4}[.]com$")
    assert all_match(persons, "credit_card", "^([0-9]{4} ){3}[0-9]{4}$")
    assert all_match(auctions, "item_name", "^[a-z][a-z ]{1,17}[a-z]$")
    assert all_match(auctions, "description", "^[a-z][a-z ]{1,97}[a-z]$")
    assert all_match(bids, "channel", "^(Google|Facebook|Baidu|Apple|channel-[0-9]{1,4})$")
    page = "^https://www.nexmark.com/[a-z]{3,4}/[a-z]{3,4}/[a-z]{3,4}/item.htm[?]query=1"
    assert all_match(bids, "url", page + "(&channel_id=[0-9]+)?$")


def test_half_of_the_bids_come_through_four_channels_and_each_has_one_url() -> None:
    channels = early().bids.column("channel").to_pylist()
    urls = early().bids.column("url").to_pylist()
    named = [channel.startswith("channel-") for channel in channels]
    assert abs(np.mean(named) - 0.5) < 0.005
    assert len(set(zip(channels, urls, strict=True))) == len(set(channels))
    with_id = np.mean(
        ["channel_id" in url for url, other in zip(urls, named, strict=True) if other]
    )
    assert abs(with_id - 0.9) < 0.02


@settings(deadline=None)
@given(st.integers(1, 2_000).filter(lambda size: size % 953), st.integers(0, 10**9))
def test_shuffling_a_group_is_a_permutation_of_it(size: int, group: int) -> None:
    n = np.arange(group * size, (group + 1) * size, dtype=np.int64)
    assert sorted(shuffled(n, size).tolist()) == n.tolist()


def test_a_group_moves_events_and_their_times_but_adds_and_loses_none() -> None:
    ordered = Nexmark(seed=3).events(0, 1_200)
    moved = in_groups().events(0, 1_200)
    for a, b in zip(ordered, moved, strict=True):
        rows = pa.Table.from_batches([b]).sort_by([(a.schema.names[0], "ascending")])
        expected = pa.Table.from_batches([a]).sort_by([(a.schema.names[0], "ascending")])
        assert Counter(map(str, rows.to_pylist())) == Counter(map(str, expected.to_pylist()))
    times = values(moved.bids, "date_time")
    assert np.any(np.diff(times) < 0)
    assert np.max(np.maximum.accumulate(times) - times) < 120 * 100


def test_row_numbers_say_where_each_row_stands_in_the_stream() -> None:
    numbers = in_groups().row_numbers(60, 500)
    assert sorted(np.concatenate(numbers).tolist()) == list(range(60, 560))
    rows = in_groups().events(60, 500)
    assert [len(kind) for kind in numbers] == [kind.num_rows for kind in rows]
    assert (
        values(rows.persons, "id").tolist()
        == (shuffled(numbers.persons, 120) // 50 + 1_000).tolist()
    )


def test_large_state_is_given_in_seconds_of_event_time() -> None:
    options = large_state(5_000, active_s=7_200, hot_every_s=1)
    assert options.auctions_in_flight == 7_200 * 300
    assert options.hot_auction_every == 300
    nexmark = Nexmark(options)
    first = 50_000_000
    bids = nexmark.events(first, 50_000).bids
    ahead = (
        values(bids, "auction") - 1_000 - newest_auction(nexmark.row_numbers(first, 50_000).bids)
    )
    assert ahead.min() < -0.99 * options.auctions_in_flight
    hottest = Counter(values(bids, "auction").tolist()).most_common(10)
    assert all(abs(count - 0.5 * 4_600) < 150 for _, count in hottest)


def test_the_side_input_pairs_each_number_with_itself() -> None:
    table = Nexmark(NexmarkOptions(side_input_rows=3)).side_input()
    assert table.schema == SIDE_INPUT
    assert table.to_pylist() == [{"key": key, "value": str(key)} for key in range(3)]
    assert plain().side_input().num_rows == 10_000


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rate": 0}, "rate is 0"),
        ({"hot_auction_share": 1.5}, "hot_auction_share is 1.5; a share is from 0 to 1"),
        ({"out_of_order_group": 1_906}, "953"),
        ({"bid_bytes": 60_000}, "give 0 to 50000 bytes"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(BadCall, match=says):
        NexmarkOptions(**wrong)


@pytest.mark.parametrize(("first", "count"), [(-1, 1), (0, -1), (0, EVENTS_MAX + 1), (2**51, 1)])
def test_a_range_that_cannot_be_made_is_refused(first: int, count: int) -> None:
    with pytest.raises(BadCall, match="ask for at most"):
        plain().events(first, count)


def test_texts_that_do_not_fit_one_batch_are_refused_before_they_are_made() -> None:
    nexmark = Nexmark(NexmarkOptions(bid_bytes=50_000))
    with pytest.raises(BadCall, match="ask for fewer events"):
        nexmark.events(0, 100_000)
