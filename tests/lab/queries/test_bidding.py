"""What is known of an auction: bids count while it is open, in whatever order things come."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from penstock_lab.queries.nexmark.bidding import Bidding, Event, after

OPENS_US, EXPIRES_US = 10_000, 20_000
AUCTION = Event(True, 10, 7, EXPIRES_US, 0, OPENS_US, 1)


def bid(price: int, at_us: int, sent_us: int = 0) -> Event:
    return Event(False, 0, 0, 0, price, at_us, sent_us)


def test_a_bid_counts_from_the_opening_to_the_end_both_included() -> None:
    for at_us, counts in ((9_999, False), (10_000, True), (20_000, True), (20_001, False)):
        assert bool(after(Bidding(), [AUCTION, bid(5, at_us)]).price) is counts


def test_of_equal_bids_the_earlier_wins() -> None:
    for order in permutations([AUCTION, bid(5, 15_000), bid(5, 12_000), bid(4, 11_000)]):
        known = after(Bidding(), order)
        assert (known.price, known.at_us) == (5, 12_000)


def test_the_lowest_bid_wins_if_asked_for() -> None:
    known = after(Bidding(), [AUCTION, bid(5, 12_000), bid(4, 13_000)], lowest=True)
    assert known.price == 4


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(8_000, 22_000), st.integers(0, 9)), max_size=8
    ),
    st.integers(0, 8),
    st.integers(0, 8),
)
def test_how_events_are_cut_into_batches_makes_no_difference(
    bids: list[tuple[int, int, int]], place: int, cut: int
) -> None:
    events = [bid(*values) for values in bids]
    events.insert(place, AUCTION)
    at_once = after(Bidding(), events)
    in_two = after(after(Bidding(), events[:cut]), events[cut:])
    assert at_once == in_two == after(Bidding(), events[::-1])


def test_nothing_changes_after_the_end_or_without_an_auction_after_the_last_bid() -> None:
    assert after(Bidding(), [AUCTION]).settled_ms == EXPIRES_US // 1_000
    assert after(Bidding(), [bid(5, 15_999), bid(5, 12_000)]).settled_ms == 15


def test_the_latest_send_time_is_that_of_what_counts() -> None:
    known = after(Bidding(), [AUCTION, bid(5, 15_000, 8), bid(5, 30_000, 99)])
    assert known.sent_us == 8
