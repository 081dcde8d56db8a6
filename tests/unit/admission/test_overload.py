"""Overload: first batches, batches cut to their deadline, recovery, and who gives way."""

from __future__ import annotations

import pytest

from penstock.admission.book import Batch, BatchCost, BatchReport, QueryBook
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait
from penstock.admission.load import NO_LOAD, Load, OtherQuery
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.admission.pace import busy_share, floor_ms, sustainable_ms, unsustainable_rate
from penstock.admission.size import batch_size
from penstock.admission.terms import PolicyName
from support.admission.books import book_of, cost_of, learn_line, offer_of, other_open

NOW_MS = 10_000.0
DEADLINE = PolicyName.DEADLINE


def test_a_backlog_is_not_the_first_batch_and_batches_double() -> None:
    book, now_ms, sizes = book_of(DEADLINE, 1_000.0), 0.0, []
    for _ in range(5):
        offer = offer_of(1_000_000, 60_000.0)
        book.asked(offer, now_ms)
        cut = decide(book, offer, NO_LOAD, now_ms)
        assert isinstance(cut, Cut)
        assert cut.rows_max is not None
        sizes.append(cut.rows_max)
        number = book.cut_made(cut, Batch(cut.rows_max, None, 60_000.0, 2), now_ms)
        visible_ms = 100 + 0.01 * cut.rows_max
        now_ms += visible_ms
        book.reported(BatchReport(number, core_ms=visible_ms, visible_ms=visible_ms), now_ms)
    assert sizes == [1_000, 2_000, 4_000, 8_000, 32_000]


def test_a_full_batch_is_cut_though_there_is_time_to_wait() -> None:
    # The largest batch so far had 1,000 rows, so the next has 4,000 at most, and 5,000 wait.
    book = book_of(DEADLINE, 10_000.0)
    learn_line(book)
    book.ours.rows_largest = 1_000
    cut = decide(book, offer_of(5_000, 0.0), NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert cut.rows_max == 4_000
    assert "nothing is gained by waiting" in cut.reason
    assert isinstance(decide(book, offer_of(3_000, 0.0), NO_LOAD, NOW_MS), Wait)


def test_a_batch_is_cut_to_what_its_deadline_allows() -> None:
    # 100 + 0.01 x rows within 500 ms: 40,000 rows, were there so large a batch before.
    book = book_of(DEADLINE, 500.0)
    learn_line(book)
    book.ours.rows_largest = 1_000_000
    size = batch_size(book, offer_of(90_000, 0.0), NO_LOAD, 500.0)
    assert size.rows_max == pytest.approx(40_000, rel=0.01)
    assert "500 ms" in (size.reason or "")


def test_a_batch_is_not_cut_below_the_size_where_fixed_cost_eats_the_throughput() -> None:
    # In 120 ms only 2,000 rows would be done, with five sixths of the time for nothing: from
    # 10,000 rows on half of the time is for rows.
    book = book_of(DEADLINE, 120.0)
    learn_line(book)
    book.ours.rows_largest = 1_000_000
    size = batch_size(book, offer_of(90_000, 0.0), NO_LOAD, 120.0)
    assert (size.rows_max or 90_000) >= 10_000


def test_late_rows_go_in_the_batches_that_recover_fastest() -> None:
    # A second of rows is late and 60 rows/ms arrive, which keep 0.6 of the time busy. At once it
    # takes 700 ms, and 700 / 0.4 until no row is late; half of it at a time takes 2.3 s.
    book = book_of(DEADLINE, 400.0)
    learn_line(book)
    book.ours.rows_largest = 100_000_000
    book.arrivals.rows.per_ms = 60.0
    whole = batch_size(book, offer_of(60_000, 1_000.0), NO_LOAD, -600.0)
    assert whole.rows_max is None
    # A thousand times as much takes 25 minutes, at once or in batches of 3 s: then in these.
    parted = batch_size(book, offer_of(60_000_000, 1_000.0), NO_LOAD, -600.0)
    assert parted.rows_max == pytest.approx(310_000, rel=0.05)
    assert "recover fastest" in (parted.reason or "")


def test_at_a_rate_that_nothing_recovers_from_batches_stay_bounded() -> None:
    book = book_of(DEADLINE, 400.0)
    learn_line(book)
    book.ours.rows_largest = 100_000_000
    book.arrivals.rows.per_ms = 120.0
    size = batch_size(book, offer_of(60_000_000, 1_000.0), NO_LOAD, -600.0)
    assert size.rows_max == pytest.approx(110_000, rel=0.05)  # a tenth of the time is fixed cost


def test_no_batch_has_tasks_longer_than_another_deadline_bears() -> None:
    # Another query with 1 s of deadline and batches of 200 ms bears tasks of 200 ms. Ours has a
    # longest task of 0.01 ms a row.
    book = book_of(DEADLINE, 60_000.0)
    learn_line(book)
    book.ours.rows_largest = 10_000_000
    tight = Load((OtherQuery("tight", deadline_ms=1_000.0, usual_ms=200.0), OtherQuery("free")))
    size = batch_size(book, offer_of(5_000_000, 0.0), tight, 50_000.0)
    assert size.rows_max == pytest.approx(20_000, rel=0.02)
    assert "another query" in (size.reason or "")
    # At 80 rows/ms so small batches would never keep up: 1.1 x 80 x 100 / (1 - 1.1 x 0.8) would.
    book.arrivals.rows.per_ms = 80.0
    size = batch_size(book, offer_of(5_000_000, 0.0), tight, 50_000.0)
    assert size.rows_max == pytest.approx(73_333, rel=0.02)
    book.arrivals.rows.per_ms = 0.0
    assert batch_size(book, offer_of(4_000_000, 0.0), NO_LOAD, 50_000.0).rows_max is None


def test_tasks_that_no_size_makes_bearable_or_that_never_keep_up_bound_nothing() -> None:
    # Ours have tasks of 0.01 ms a row, and no fixed part: 200 ms are 20,000 rows.
    book = book_of(DEADLINE, 60_000.0)
    learn_line(book)
    book.ours.rows_largest = 10_000_000
    tight = Load((OtherQuery("tight", deadline_ms=1_000.0, usual_ms=200.0),))
    assert batch_size(book, offer_of(4_000_000, 0.0), tight, 50_000.0).rows_max is not None
    # 1.1 x 95 rows/ms is more than the 100 that can be done.
    book.arrivals.rows.per_ms = 95.0
    assert batch_size(book, offer_of(4_000_000, 0.0), tight, 50_000.0).rows_max is None
    # Of this one every task takes 300 ms before it has a row.
    book = book_of(DEADLINE, 60_000.0)
    for number in range(8):
        rows = 1_000 * (1 + number % 4)
        task_ms = 300.0 + 0.01 * rows
        book.batch_done(cost_of(rows, 400.0, 2 * task_ms, task_ms=task_ms, number=number), 0.0)
    book.ours.rows_largest = 10_000_000
    assert batch_size(book, offer_of(4_000, 0.0), tight, 50_000.0).rows_max is None


def test_rows_that_are_late_are_worked_off_beside_a_tight_deadline() -> None:
    # Tasks of 200 ms are bearable, which is 20,000 rows. At 50 rows/ms they take in hardly more
    # than arrives; 1.5 times as much do batches of 1.5 x 50 x 100 / (1 - 1.5 x 0.5) rows.
    book = book_of(DEADLINE, 60_000.0)
    learn_line(book)
    book.ours.rows_largest = 10_000_000
    book.arrivals.rows.per_ms = 50.0
    tight = Load((OtherQuery("tight", deadline_ms=1_000.0, usual_ms=200.0),))
    in_time = batch_size(book, offer_of(5_000_000, 0.0), tight, 50_000.0)
    assert in_time.rows_max == pytest.approx(20_000, rel=0.02)
    late = batch_size(book, offer_of(5_000_000, 90_000.0), tight, -30_000.0)
    assert late.rows_max == pytest.approx(30_000, rel=0.02)


def test_an_unsustainable_rate_is_said_with_the_growth_of_the_backlog() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_line(book)
    book.arrivals.rows.per_ms = 150.0  # 0.01 ms each: 100 can be done
    cut = decide(book, offer_of(100_000, 2_000.0), NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert "cannot be sustained" in cut.reason
    assert "grows by 50000 rows/s" in cut.reason


# Two other queries keep 0.9 of the two cores busy each. What ours takes is 0.01 ms a row on both
# cores, so 0.1 ms a row on the 0.2 cores that they leave.
TWO_OTHERS = Load((OtherQuery("a", core_share=0.9), OtherQuery("b", core_share=0.9)))


def test_a_rate_that_the_cores_left_by_other_queries_cannot_sustain_is_said() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_line(book)
    book.arrivals.rows.per_ms = 60.0  # 0.6 of the time if it had both cores
    book.arrivals.rows.growth_per_ms = 3.0
    cut = decide(book, offer_of(100_000, 2_000.0), TWO_OTHERS, NOW_MS)
    assert isinstance(cut, Cut)
    assert (
        "the rate cannot be sustained beside other queries, which keep 1.8 of 2 cores busy: "
        "60000 rows/s arrive, 57000 rows/s are processed, the backlog grows by 3000 rows/s"
    ) in cut.reason
    # The cores left are enough for 6 rows/ms, and for any rate that no backlog grows at: others
    # that take all they can get give way.
    book.arrivals.rows.per_ms = 6.0
    assert unsustainable_rate(book, TWO_OTHERS, 2) is None
    book.arrivals.rows.per_ms, book.arrivals.rows.growth_per_ms = 60.0, 0.0
    assert unsustainable_rate(book, TWO_OTHERS, 2) is None


def test_the_shortest_deadline_that_holds_reckons_with_the_cores_that_others_leave() -> None:
    # One other keeps a core busy, so a row takes 0.02 ms: at 25 rows/ms half of the time.
    book = book_of(DEADLINE, 1_000.0)
    learn_line(book)
    book.arrivals.rows.per_ms = 25.0
    beside = Load((OtherQuery("a", core_share=1.0),))
    alone_ms, beside_ms = sustainable_ms(book, NO_LOAD, 2), sustainable_ms(book, beside, 2)
    assert alone_ms == pytest.approx(200 / 0.75, rel=0.03)
    assert beside_ms == pytest.approx(200 / 0.5, rel=0.03)
    # An equal part of the cores is ours by right, unless the backlog shows that it is not.
    book.arrivals.rows.per_ms = 50.0
    assert sustainable_ms(book, TWO_OTHERS, 2) is None
    book.arrivals.rows.per_ms = 20.0
    assert sustainable_ms(book, TWO_OTHERS, 2) == pytest.approx(200 / 0.4, rel=0.03)
    book.arrivals.rows.growth_per_ms = 1.0
    assert sustainable_ms(book, TWO_OTHERS, 2) is None


# Spark's file source tells bytes and files, no rows. Batches cost 100 ms + 50 ms a megabyte.


def learn_bytes(book: QueryBook) -> None:
    for number in range(8):
        megabytes = 1 + number % 4
        visible_ms = 100.0 + 50.0 * megabytes
        book.batch_done(
            BatchCost(number, visible_ms, None, megabytes * 1_000_000, True, 0.0, 0.0, 0.0, 9.0),
            float(number),
        )


def bytes_arrive(book: QueryBook, arriving_mb: int, taken_mb: int) -> Offer:
    """Once a second `arriving_mb` come and a batch takes `taken_mb`; the last offer before it."""
    waiting_mb = 0
    for second in range(30):
        waiting_mb += arriving_mb
        offer = files_of(waiting_mb)
        now_ms = 1_000.0 * second
        book.offered(offer, now_ms)
        batch = Batch(None, min(taken_mb, waiting_mb) * 1_000_000, 900.0, 2)
        book.cut_made(Cut("test"), batch, now_ms)
        waiting_mb -= min(taken_mb, waiting_mb)
        book.offered(files_of(waiting_mb), now_ms + 1.0)
    offer = files_of(waiting_mb + arriving_mb)
    book.offered(offer, 30_000.0)
    return offer


def files_of(megabytes: int) -> Offer:
    """Files of a folder, a megabyte each."""
    if not megabytes:
        return Offer((Waiting(0, cuts_by=CutsBy.BYTES),), 2)
    waiting = Waiting(0, None, megabytes * 1_000_000, megabytes, 900.0, CutsBy.BYTES)
    return Offer((waiting,), 2)


def test_bytes_that_arrive_faster_than_they_are_processed_are_said() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_bytes(book)
    offer = bytes_arrive(book, arriving_mb=25, taken_mb=18)
    cut = decide(book, offer, NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert (
        "the rate cannot be sustained: 25.0 MB/s arrive, 20.0 MB/s can be processed, "
        "the backlog grows by 7.0 MB/s"
    ) in cut.reason
    assert sustainable_ms(book, NO_LOAD, 2) is None


def test_a_batch_of_bytes_is_no_smaller_than_what_arrives_meanwhile() -> None:
    # At 10 MB/s half of the time goes into bytes: batches of 120 ms would take in 0.4 MB, while
    # 1.2 MB arrive. 1.1 x 10 x 100 / (1 - 1.1 x 0.5) = 2.4 MB keep up.
    book = book_of(DEADLINE, 120.0)
    learn_bytes(book)
    bytes_arrive(book, arriving_mb=10, taken_mb=10)
    assert book.arrivals.bytes.per_ms == pytest.approx(10_000, rel=0.05)
    assert busy_share(book, 2) == pytest.approx(0.5, rel=0.05)
    book.ours.bytes_largest = 1_000_000_000
    tight = Load((OtherQuery("tight", deadline_ms=1_000.0, usual_ms=200.0),))
    for load in (NO_LOAD, tight):
        size = batch_size(book, files_of(90), load, 120.0)
        assert (size.bytes_max or 90_000_000) >= 2_300_000


def test_bytes_that_are_kept_up_with_are_no_growing_backlog() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_bytes(book)
    offer = bytes_arrive(book, arriving_mb=10, taken_mb=10)
    assert unsustainable_rate(book, NO_LOAD, offer.cores) is None
    assert book.arrivals.bytes.growth_per_ms == pytest.approx(0.0, abs=1.0)


def test_a_deadline_below_the_floor_is_said_with_the_floor() -> None:
    book = book_of(DEADLINE, 50.0)
    learn_line(book)
    assert floor_ms(book, 2) == pytest.approx(100.0, abs=1)
    cut = decide(book, offer_of(1_000, 10.0), NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert cut.is_below_floor
    assert "below the floor: the smallest batch takes 100 ms" in cut.reason


def test_the_shortest_deadline_that_holds_grows_with_the_rate() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_line(book)
    assert sustainable_ms(book, NO_LOAD, 2) == pytest.approx(200.0, abs=3)
    book.arrivals.rows.per_ms = 50.0
    assert sustainable_ms(book, NO_LOAD, 2) == pytest.approx(400.0, abs=6)
    book.arrivals.rows.per_ms = 100.1
    assert sustainable_ms(book, NO_LOAD, 2) is None


def hurt(importance: float, **more: float) -> OtherQuery:
    """A query whose 300 ms of core-time are due in 200 ms on two cores."""
    return other_open("other", 300.0, NOW_MS + 200, importance=importance, **more)


def test_the_less_important_query_gives_way_and_its_equal_does_not() -> None:
    book = book_of(DEADLINE, 500.0, importance=1.0)
    learn_line(book)
    late = offer_of(20_000, 450.0)
    waits = decide(book, late, Load((hurt(importance=5.0),)), NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.gives_way
    assert "more important query other" in waits.reason
    assert isinstance(decide(book, late, Load((hurt(importance=1.0),)), NOW_MS), Cut)


def test_giving_way_ends_at_its_bound() -> None:
    book = book_of(DEADLINE, 500.0, importance=1.0)
    learn_line(book)
    load = Load((hurt(importance=5.0),))
    just_before = decide(book, offer_of(20_000, 990.0), load, NOW_MS)
    assert isinstance(just_before, Wait)
    assert just_before.until_ms == pytest.approx(NOW_MS + 10.0)
    assert isinstance(decide(book, offer_of(20_000, 1_000.0), load, NOW_MS), Cut)


def test_a_weight_is_the_importance_against_the_highest_with_a_floor() -> None:
    book = book_of(DEADLINE, 500.0, importance=2.0)
    learn_line(book)
    weights = []
    for importance in (None, 1.0, 8.0, 1_000.0):
        others = [] if importance is None else [other_open("a", 0.0, 1e9, importance=importance)]
        cut = decide(book, offer_of(1_000, 1_000.0), Load(tuple(others)), NOW_MS)
        assert isinstance(cut, Cut)
        weights.append(cut.weight)
    assert weights == [1.0, 1.0, 0.25, 0.05]


def test_a_growing_batch_time_is_learned_from_each_batch() -> None:
    book = book_of(DEADLINE, 1_000.0)
    learn_line(book)
    for number in range(30):
        book.batch_done(cost_of(2_000, 400.0, number=number), 0.0)
    predicted = book.ours.predict(2_000, None, 2)
    assert predicted is not None
    assert predicted.ms_p50 == pytest.approx(400.0, rel=0.1)
