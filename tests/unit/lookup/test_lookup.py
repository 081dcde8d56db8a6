"""A look-up's requests: one round trip, one fetch per key, retries, an end to every wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from penstock.errors import BadCall, Bug, TryAgain
from penstock.lookup.lanes import LOST_LANES_MAX
from penstock.lookup.lookup import FAILED, FETCH_KEYS_MIN, HINTS_WAITING_MAX, Lookup
from penstock.lookup.store import Key, Row
from penstock.prefetch.value_cache import ValueCache
from support.lookup_stores import HeldStore

LONG_S = 60.0
"""Never waited for: what is tested ends before."""


class Opened:
    """Look-ups over one store, closed after the test."""

    def __init__(self, store: HeldStore) -> None:
        self.store = store
        self.made: list[Lookup] = []

    def __call__(
        self,
        *,
        policy: str = "timestamp",
        timeout_s: float = LONG_S,
        retries: int = 0,
        in_flight: int = 4,
        ttl_s: float | None = None,
    ) -> Lookup:
        cache = ValueCache(policy, 1 << 20, ttl_s)
        self.made.append(
            Lookup(self.store, cache, timeout_s=timeout_s, retries=retries, in_flight=in_flight)
        )
        return self.made[-1]


@pytest.fixture
def store() -> HeldStore:
    return HeldStore(absent=["gone"])


@pytest.fixture
def opened(store: HeldStore) -> Iterator[Opened]:
    each = Opened(store)
    yield each
    store.open.set()
    for lookup in each.made:
        lookup.close()


def looked_up(lookup: Lookup, *keys: Key) -> list[object]:
    rows, failure, _ = lookup.answer(lookup.ask(keys, [0] * len(keys)))
    assert failure is None
    return list(rows)


def row(key: Key) -> Row:
    return (f"value of {key!s}",)


def wait_hints(lookup: Lookup, prefetched: int) -> None:
    """A hint's fetch ends in a lane; nobody is told."""
    until = time.monotonic() + LONG_S
    while lookup._counts.prefetched < prefetched:
        assert time.monotonic() < until
        time.sleep(0.002)


def test_a_batch_is_one_request_and_what_is_known_is_not_asked_again(
    opened: Opened, store: HeldStore
) -> None:
    lookup = opened()
    assert looked_up(lookup, "a", "b", "gone") == [row("a"), row("b"), None]
    assert looked_up(lookup, "gone", "b", "c") == [None, row("b"), row("c")]
    assert store.asked == [["a", "b", "gone"], ["c"]]
    counts = lookup.take_counts()
    assert (counts.hits, counts.misses, counts.absent) == (2, 4, 2)
    assert sum(counts.round_trips.values()) == 2
    assert counts.round_trip_ms(0.99) is not None


def test_without_a_cache_every_batch_asks(opened: Opened, store: HeldStore) -> None:
    lookup = opened(policy="off")
    looked_up(lookup, "a")
    looked_up(lookup, "a")
    assert store.asked == [["a"], ["a"]]


def test_many_keys_are_divided_among_requests_in_flight_at_once(
    opened: Opened, store: HeldStore
) -> None:
    lookup = opened(in_flight=4)
    store.open.clear()
    keys = list(range(4 * FETCH_KEYS_MIN))
    asked = lookup.ask(keys, [0] * len(keys))
    for _ in range(4):  # all four have begun before one is answered
        assert store.began.acquire(timeout=LONG_S)
    store.open.set()
    rows, failure, on_path = lookup.answer(asked)
    assert (rows, failure, on_path) == ([row(key) for key in keys], None, len(keys))
    assert store.connections == 4


def test_a_key_in_flight_is_fetched_once(opened: Opened, store: HeldStore) -> None:
    lookup = opened()
    store.open.clear()
    first, second = lookup.ask(["a", "b"], [0, 0]), lookup.ask(["b", "c"], [0, 0])
    store.open.set()
    assert lookup.answer(first)[0] == [row("a"), row("b")]
    assert lookup.answer(second)[0] == [row("b"), row("c")]
    assert sorted(map(sorted, store.asked)) == [["a", "b"], ["c"]]
    assert lookup.take_counts().waited == 1


def test_a_hinted_key_is_there_before_its_row(opened: Opened, store: HeldStore) -> None:
    lookup = opened()
    lookup.hint(["a", "gone"], [0, 0])
    wait_hints(lookup, 2)
    rows, _, on_path = lookup.answer(lookup.ask(["a", "gone"], [1, 1]))
    assert (rows, on_path) == ([row("a"), None], 0)
    lookup.hint(["a"], [2])
    counts = lookup.take_counts()
    assert (counts.misses, counts.prefetched, counts.prefetched_used) == (0, 2, 2)
    assert (counts.hints, len(store.asked)) == (3, 1)


def test_a_row_waits_for_the_hint_s_request_that_is_under_way(
    opened: Opened, store: HeldStore
) -> None:
    lookup = opened()
    store.open.clear()
    lookup.hint(["a"], [0])
    assert store.began.acquire(timeout=LONG_S)
    asked = lookup.ask(["a"], [1])
    store.open.set()
    assert lookup.answer(asked)[0] == [row("a")]
    counts = lookup.take_counts()
    assert (len(store.asked), counts.waited, counts.misses) == (1, 1, 0)
    assert (counts.prefetched_used, counts.prefetched_unused) == (1, 0)


def test_a_hint_that_fails_costs_a_read_and_no_try(opened: Opened, store: HeldStore) -> None:
    lookup = opened(retries=0)
    store.open.clear()
    store.errors.append(TryAgain("busy", code="store_failed"))
    lookup.hint(["a"], [0])
    assert store.began.acquire(timeout=LONG_S)
    asked = lookup.ask(["a"], [1])
    store.open.set()
    assert lookup.answer(asked)[0] == [row("a")]
    assert lookup.take_counts().retries == 0


def test_hints_leave_a_lane_to_rows(opened: Opened, store: HeldStore) -> None:
    lookup = opened(in_flight=2)
    store.open.clear()
    lookup.hint(list(range(2_000)), [0] * 2_000)
    assert store.began.acquire(timeout=LONG_S)
    asked = lookup.ask(["a"], [0])
    assert store.began.acquire(timeout=LONG_S)
    assert ["a"] in store.asked
    store.open.set()
    assert lookup.answer(asked)[0] == [row("a")]


def test_hints_beyond_their_bound_are_dropped(opened: Opened, store: HeldStore) -> None:
    lookup = opened()
    store.open.clear()
    for start in range(HINTS_WAITING_MAX + 5):
        lookup.hint([start], [0])
    assert not lookup.has_room_for_hints
    assert len(lookup._in_flight) == HINTS_WAITING_MAX
    store.open.set()
    wait_hints(lookup, HINTS_WAITING_MAX)
    assert lookup.has_room_for_hints


def test_a_store_that_fails_is_asked_again_on_a_new_connection(
    opened: Opened, store: HeldStore
) -> None:
    lookup = opened(retries=2)
    store.errors += [TryAgain("loading", code="store_failed"), ConnectionResetError("gone")]
    assert looked_up(lookup, "a") == [row("a")]
    assert (len(store.asked), store.connections) == (3, 1)
    assert lookup.take_counts().retries == 2


def test_a_store_that_keeps_failing_is_given_up_and_said_so(
    opened: Opened, store: HeldStore
) -> None:
    lookup = opened(retries=1)
    store.errors += [ConnectionRefusedError("nobody")] * 3
    rows, failure, _ = lookup.answer(lookup.ask(["a", "b"], [0, 0]))
    assert rows == [FAILED, FAILED]
    assert failure is not None
    assert "2 keys could not be looked up in HeldStore, after 2 tries" in failure.message
    assert "nobody" in failure.message
    assert lookup.take_counts().failed == 2
    # One try, while it is down; then as before.
    assert lookup.answer(lookup.ask(["a"], [0]))[0] == [FAILED]
    assert len(store.asked) == 3
    assert looked_up(lookup, "a") == [row("a")]


def test_a_store_that_never_comes_back_is_left_behind(opened: Opened, store: HeldStore) -> None:
    lookup = opened(timeout_s=0.05, retries=1, in_flight=1)
    store.open.clear()
    begun = time.monotonic()
    rows, failure, _ = lookup.answer(lookup.ask(["a"], [0]))
    assert rows == [FAILED]
    assert failure is not None
    assert "no answer within 0.05 s" in failure.message
    assert time.monotonic() - begun < 30
    assert len(store.asked) == 2, "the second try has another lane, though only one is allowed"
    store.open.set()
    assert looked_up(lookup, "b") == [row("b")]


def test_a_late_answer_is_not_kept(opened: Opened, store: HeldStore) -> None:
    lookup = opened(timeout_s=0.05)
    store.open.clear()
    lookup.answer(lookup.ask(["a"], [0]))
    store.open.set()
    store.values["a"] = "newer"
    lookup._timeout_s = LONG_S
    assert looked_up(lookup, "a") == [("newer",)]


def test_requests_that_never_come_back_are_bounded(opened: Opened, store: HeldStore) -> None:
    lookup = opened(timeout_s=0.01)
    store.open.clear()

    def message(key: int) -> str:
        failure = lookup.answer(lookup.ask([key], [0]))[1]
        assert failure is not None
        return failure.message

    # On busy cores a request may be given up before its thread has begun: that one is not lost.
    numbers = iter(range(100 * LOST_LANES_MAX))
    while "have never come back" not in message(next(numbers)):
        pass
    assert next(numbers) > LOST_LANES_MAX
    threads = threading.active_count()
    assert "have never come back" in message(next(numbers))
    assert threading.active_count() <= threads


@pytest.mark.parametrize(
    ("error", "kind"),
    [(BadCall("a bad value", code="wrong_value"), BadCall), (KeyError("oops"), Bug)],
)
def test_what_another_try_cannot_mend_is_raised_at_once(
    opened: Opened, store: HeldStore, error: Exception, kind: type[Exception]
) -> None:
    lookup = opened(retries=5)
    store.errors.append(error)
    with pytest.raises(kind):
        lookup.answer(lookup.ask(["a"], [0]))
    assert len(store.asked) == 1


def test_a_store_that_gives_too_few_rows_is_named(opened: Opened, store: HeldStore) -> None:
    class Short(HeldStore):
        def connect(self, timeout_s: float) -> HeldStore:  # type: ignore[override]
            return self

        def get_many(self, keys: object) -> list[Row | None]:
            return []

        def close(self) -> None: ...

    opened.store = Short()
    with pytest.raises(Bug, match="asked for 1 keys and gave 0 rows"):
        looked_up(opened(), "a")


def test_a_value_that_has_expired_is_asked_for_again(opened: Opened, store: HeldStore) -> None:
    lookup = opened(ttl_s=0.01)
    looked_up(lookup, "a")
    store.values["a"] = "changed"
    time.sleep(0.02)
    assert looked_up(lookup, "a") == [("changed",)]
    assert lookup.take_counts().expired == 1
