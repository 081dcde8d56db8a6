"""Policies against numbers worked out by hand from the papers' equations, and from ours."""

from __future__ import annotations

import re

import msgspec
import pytest

from penstock.admission.book import QueryBook
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait
from penstock.admission.load import NO_LOAD, Load, OtherQuery
from penstock.admission.offer import Offer, Waiting
from penstock.admission.terms import CountedFrom, PolicyName, Terms, terms_problem
from support.admission.books import book_of, cost_of, learn_line, measured, offer_of, other_open

NOW_MS = 10_000.0


def test_nothing_that_waits_is_waited_for_whatever_the_policy() -> None:
    for policy in PolicyName:
        decision = decide(book_of(policy, 1000.0), Offer((Waiting(0),), 2), NO_LOAD, NOW_MS)
        assert isinstance(decision, Wait)
        assert decision.until_ms > NOW_MS


def test_asap_cuts_all_that_waits_at_once() -> None:
    decision = decide(book_of(PolicyName.ASAP), offer_of(5, 0.0), NO_LOAD, NOW_MS)
    assert isinstance(decision, Cut)
    assert decision.rows_max is None


def test_fixed_counts_its_interval_from_the_last_cut() -> None:
    book = book_of(PolicyName.FIXED, interval_ms=500.0)
    assert isinstance(decide(book, offer_of(5, 0.0), NO_LOAD, NOW_MS), Cut)
    book.last_cut_at_ms = NOW_MS - 200.0
    waits = decide(book, offer_of(5, 150.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == NOW_MS + 300.0
    assert isinstance(decide(book, offer_of(5, 450.0), NO_LOAD, NOW_MS + 300.0), Cut)


# zStream. Two batches of 1,000 rows in 100 and in 200 ms: throughputs of 10 and 5 rows/ms, whose
# mean is 7.5 (not 2,000 rows / 300 ms = 6.67), so 3,000 rows take 400 ms.


def zstream_book(deadline_ms: float = 1_000.0) -> QueryBook:
    book = book_of(PolicyName.ZSTREAM, deadline_ms)
    book.batch_done(cost_of(1_000, 100.0), 0.0)
    book.batch_done(cost_of(1_000, 230.0, queued_ms=30.0), 1.0)
    return book


def test_zstream_admits_the_first_batch_at_once() -> None:
    decision = decide(book_of(PolicyName.ZSTREAM, 1e6), offer_of(9, 0.0), NO_LOAD, NOW_MS)
    assert isinstance(decision, Cut)


def test_zstream_waits_while_the_sum_is_below_the_deadline() -> None:
    decision = decide(zstream_book(), offer_of(3_000, 250.0), NO_LOAD, NOW_MS)
    assert isinstance(decision, Wait)
    assert decision.until_ms == pytest.approx(NOW_MS + 1_000 - 250 - 400)


def test_zstream_adds_what_is_queued() -> None:
    queued = Load((other_open("a", 1.0, None, zstream_ms=300.0), OtherQuery("idle")))
    waits = decide(zstream_book(), offer_of(3_000, 250.0), queued, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 50)
    admits = decide(zstream_book(), offer_of(3_000, 300.0), queued, NOW_MS)
    assert isinstance(admits, Cut)
    assert admits.predicted_ms == pytest.approx(700.0)
    assert admits.left_ms == pytest.approx(700.0)


def zstream_sums(schedule: str | None, age_ms: float, *queued: OtherQuery) -> tuple[float, float]:
    """T_sched and T_anal of 1,500 rows, which take 200 ms on all cores, as the reason has them."""
    offer = offer_of(1_500, age_ms, schedule=schedule)
    decision = decide(zstream_book(), offer, Load(queued), NOW_MS)
    numbers = re.search(r"queued (\d+) \+ analysis (\d+) ms", decision.reason)
    assert numbers is not None, decision.reason
    return float(numbers[1]), float(numbers[2])


def test_zstream_counts_what_is_queued_whole_where_one_batch_has_all_cores() -> None:
    queued = (queued_zstream("a", 300.0), queued_zstream("b", 100.0))
    for schedule in (None, "fifo", "edf"):
        assert zstream_sums(schedule, 0.0, *queued) == (400.0, 200.0)


def test_zstream_divides_every_throughput_by_the_cores_that_sharing_leaves() -> None:
    # Eq. 4 under FAIR: three batches have a third of the cores each, so all take three times as
    # long, and Eq. 3 sums those that are queued.
    queued = (queued_zstream("a", 300.0), queued_zstream("b", 100.0))
    assert zstream_sums("fair", 0.0, *queued) == (1_200.0, 600.0)
    assert zstream_sums("fair", 0.0) == (0.0, 200.0)


def test_zstream_takes_the_cores_under_rdas_from_the_weights() -> None:
    # Due in 1,000 (ours), 500 and 0 ms: weights of 1/3, 2/3 and 1, so of six cores one, two and
    # three. T_anal is 200 x 6, T_sched 300 x 3 + 100 x 2.
    middle = queued_zstream("a", 300.0, NOW_MS + 500.0)
    urgent = queued_zstream("b", 100.0, NOW_MS)
    assert zstream_sums("rdas", 0.0, middle, urgent) == (1_100.0, 1_200.0)
    # Ours as urgent as the other: the same weight.
    assert zstream_sums("rdas", 1_000.0, urgent) == (200.0, 400.0)


def queued_zstream(query: str, all_cores_ms: float, due_at_ms: float | None = None) -> OtherQuery:
    """A batch that is queued, with the paper's prediction for it on all cores."""
    return other_open(query, 1.0, due_at_ms, zstream_ms=all_cores_ms)


# LMStream. The same batches: (1,000 + 1,000) rows / (100 + 230) ms, so 3,000 rows take 495 ms.


def test_slide_bounds_the_latency_by_the_slide() -> None:
    book = book_of(PolicyName.SLIDE, slide_ms=1_000.0)
    assert isinstance(decide(book, offer_of(9, 0.0), NO_LOAD, NOW_MS), Cut)
    book.batch_done(cost_of(1_000, 100.0), 0.0)
    book.batch_done(cost_of(1_000, 230.0, queued_ms=30.0), 1.0)
    waits = decide(book, offer_of(3_000, 205.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 300.0)
    assert isinstance(decide(book, offer_of(3_000, 505.0), NO_LOAD, NOW_MS), Cut)


def test_running_mean_divides_by_one_less_as_printed() -> None:
    # Longest latencies so far 150, 300 and 250 ms: (150 + 300 + 250) / 2 = 350. Throughput:
    # 3,000 rows in 100 + 200 + 150 ms, so 1,000 rows take 150 ms.
    book = book_of(PolicyName.RUNNING_MEAN)
    measured(book, age_ms=50.0, visible_ms=100.0)
    assert isinstance(decide(book, offer_of(1, 0.0), NO_LOAD, NOW_MS), Cut)  # 150 / 0
    measured(book, age_ms=100.0, visible_ms=200.0)
    measured(book, age_ms=100.0, visible_ms=150.0)
    waits = decide(book, offer_of(1_000, 120.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 350 - 120 - 150)
    assert isinstance(decide(book, offer_of(1_000, 200.0), NO_LOAD, NOW_MS), Cut)


# Ours. Batches cost 100 + 0.01 x rows ms; the answer's way is 5 ms.


def test_deadline_waits_for_the_last_moment_that_holds() -> None:
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    waits = decide(book, offer_of(2_000, 300.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 1_000 - 300 - 120 - 5, abs=1.0)
    assert waits.deadline_at_ms == pytest.approx(NOW_MS + 700)
    cut = decide(book, offer_of(2_000, 880.0), NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert cut.predicted_ms == pytest.approx(120.0, abs=1.0)
    assert cut.left_ms == pytest.approx(120.0)
    assert cut.rows_max is None


def test_deadline_reckons_with_rows_that_are_still_to_come() -> None:
    # 20 rows/ms at 0.01 ms each: a millisecond of waiting makes the batch 0.2 ms longer.
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    book.arrivals.rows.per_ms = 20.0
    waits = decide(book, offer_of(2_000, 300.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 575 / 1.2, abs=1.0)


def test_deadline_does_not_let_its_moment_pass_in_a_batch_without_data() -> None:
    # Of 1,000 ms 700 are left, 125 may be needed: the moment is 575 ms away.
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    offer = offer_of(2_000, 300.0)
    first = msgspec.structs.replace(offer, is_first=True)
    for number in range(8):
        # Spark asks again 600 ms after it was told to wait.
        told_at_ms = 1_000.0 * number
        book.decided(Wait(told_at_ms + 575.0, ""), first, told_at_ms)
        book.asked(offer, told_at_ms + 600.0)
    assert book.totals.moments_unasked == 8
    cut = decide(book, first, NO_LOAD, NOW_MS)
    assert isinstance(cut, Cut)
    assert "a batch without data" in cut.reason
    assert isinstance(decide(book, offer, NO_LOAD, NOW_MS), Wait)
    for _ in range(80):
        book.decided(cut, first, NOW_MS)
    assert isinstance(decide(book, first, NO_LOAD, NOW_MS), Wait), "it is not believed for ever"


def test_deadline_waits_less_behind_batches_that_come_first() -> None:
    # 400 ms of core-time with an earlier deadline, over two cores; a later one is no matter.
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    earlier = other_open("earlier", 400.0, NOW_MS + 100)
    later = other_open("later", 4_000.0, NOW_MS + 9_000, open_task_ms=30.0)
    alone = decide(book, offer_of(2_000, 300.0), NO_LOAD, NOW_MS)
    waits = decide(book, offer_of(2_000, 300.0), Load((earlier, later)), NOW_MS)
    assert isinstance(alone, Wait)
    assert isinstance(waits, Wait)
    assert alone.until_ms - waits.until_ms == pytest.approx(200 + 30, abs=0.5)


def test_deadline_keeps_the_high_quantile_of_its_errors_in_hand() -> None:
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    for number in range(40):
        visible_ms = 200.0 if number % 4 == 0 else 100.0
        book.batch_done(cost_of(1_000, visible_ms, number=number), float(number))
    waits = decide(book, offer_of(1_000, 0.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert NOW_MS + 1_000 - waits.until_ms > 180.0  # the mean is 125


def test_auto_cuts_as_soon_as_the_cores_leave_some_spare() -> None:
    # Batches of 120 ms: one every 160 ms leaves a quarter of the query's time.
    book = book_of(PolicyName.AUTO, 5_000.0)
    for number in range(8):
        book.batch_done(cost_of(2_000, 120.0, 60.0, number=number), float(number))
    book.last_cut_at_ms = NOW_MS - 100.0
    waits = decide(book, offer_of(1_000, 90.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS + 60)
    assert isinstance(decide(book, offer_of(1_000, 130.0), NO_LOAD, NOW_MS + 60), Cut)
    # Of the two cores others keep 1.2 busy: of 1.5 that may be, 0.75 are ours by right. A batch
    # without data of 90 ms and 300 ms of core-time follows each, so it is one every 480 ms.
    busy = Load((OtherQuery("a", core_share=1.2),))
    for number in range(8, 30):
        book.batch_done(cost_of(0, 90.0, 300.0, has_data=False), float(number))
        book.batch_done(cost_of(2_000, 120.0, 60.0, number=number), float(number))
    waits = decide(book, offer_of(1_000, 90.0), busy, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms == pytest.approx(NOW_MS - 100 + 480)


def test_auto_never_waits_past_the_deadline() -> None:
    book = book_of(PolicyName.AUTO, 200.0)
    learn_line(book)
    book.last_cut_at_ms = NOW_MS
    waits = decide(book, offer_of(1_000, 0.0), NO_LOAD, NOW_MS)
    assert isinstance(waits, Wait)
    assert waits.until_ms <= NOW_MS + 200 - 110
    assert isinstance(decide(book, offer_of(1_000, 85.0), NO_LOAD, NOW_MS), Cut)


def test_auto_finds_the_shortest_deadline_that_holds_and_widens_it_when_missed() -> None:
    book = book_of(PolicyName.AUTO)
    assert book.deadline_ms is None
    for _ in range(60):
        measured(book, age_ms=100.0, visible_ms=100.0)
    assert book.deadline_ms == pytest.approx(220.0)  # 1.1 x 200
    measured(book, age_ms=200.0, visible_ms=200.0)
    assert book.deadline_ms == pytest.approx(440.0)
    for _ in range(120):
        measured(book, age_ms=100.0, visible_ms=100.0)
    assert book.deadline_ms == pytest.approx(220.0)


def test_data_that_must_not_be_withheld_are_cut_whole() -> None:
    for policy in PolicyName:
        book = book_of(policy, 60_000.0, interval_ms=60_000.0, slide_ms=60_000.0)
        learn_line(book)
        for _ in range(3):
            measured(book, 20_000.0, 20_000.0)
        book.last_cut_at_ms = NOW_MS
        decision = decide(book, offer_of(10**7, 0.0, must_cut=True), NO_LOAD, NOW_MS)
        assert isinstance(decision, Cut), policy
        assert decision.rows_max is None, policy


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        (Terms(deadline_ms=0.0), "deadline is 0 ms"),
        (Terms(deadline_ms=-3.0), "deadline is -3 ms"),
        (Terms(deadline_ms=float("nan")), "deadline is nan ms"),
        (Terms(policy=PolicyName.DEADLINE), "needs a deadline"),
        (Terms(policy=PolicyName.ZSTREAM), "needs a deadline"),
        (Terms(policy=PolicyName.FIXED), "needs an interval"),
        (Terms(policy=PolicyName.SLIDE), "needs the slide of a window"),
        (Terms(policy=PolicyName.SLIDE, slide_ms=-1.0), "slide is -1 ms"),
        (Terms(importance=0.0), "importance is 0"),
    ],
)
def test_terms_that_cannot_be_kept_are_refused_in_a_sentence(terms: Terms, words: str) -> None:
    assert words in (terms_problem(terms) or "")


def test_terms_that_can_be_kept_are_not_refused() -> None:
    assert terms_problem(Terms(800.0, PolicyName.DEADLINE, origin=CountedFrom.ORIGIN)) is None
    assert terms_problem(Terms(policy=PolicyName.AUTO)) is None
