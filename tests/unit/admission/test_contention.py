"""Contention: what other queries' batches cost a batch, in each order of tasks, on two cores."""

from __future__ import annotations

import pytest

from penstock.admission.book import Batch
from penstock.admission.contention import (
    OWN,
    WantedBatch,
    open_batches,
    parts_of_cores,
    waiting_ms,
)
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait
from penstock.admission.load import Load, OtherQuery
from penstock.admission.terms import PolicyName
from support.admission.books import book_of, learn_line, offer_of, other_open

NOW_MS = 10_000.0
CORES = 2

# One batch is due before ours, one after it; each still needs a second of core-time, and the one
# later one has tasks of 30 ms.
EARLIER = other_open("earlier", 1_000.0, NOW_MS + 100, open_task_ms=10.0)
LATER = other_open("later", 1_000.0, NOW_MS + 9_000, open_task_ms=30.0)


def wait_ms(schedule: str | None, core_ms: float, *others: OtherQuery) -> float:
    own = WantedBatch(core_ms, NOW_MS + 1_000)
    return waiting_ms(own, Load(others), schedule, CORES, NOW_MS)


@pytest.mark.parametrize("schedule", ["edf", None])
def test_the_earliest_deadline_waits_for_what_is_due_before_and_a_task(
    schedule: str | None,
) -> None:
    assert wait_ms(schedule, 200.0, EARLIER, LATER) == pytest.approx(500 + 30, abs=0.1)


@pytest.mark.parametrize("schedule", ["fifo", "spark"])
def test_the_oldest_first_waits_for_all_that_was_cut_before(schedule: str) -> None:
    assert wait_ms(schedule, 200.0, EARLIER, LATER) == pytest.approx(500 + 500, abs=0.1)


def test_an_equal_share_makes_a_short_batch_longer_by_as_much_as_it_takes_itself() -> None:
    # 200 ms of core-time beside two others: each takes 200 ms out of the cores meanwhile, and the
    # longest task that runs now has to end.
    assert wait_ms("fair", 200.0, EARLIER, LATER) == pytest.approx((400 + 30) / CORES, abs=0.1)
    # A batch that outlasts both has to wait for all that they need.
    assert wait_ms("fair", 9_000.0, EARLIER, LATER) == pytest.approx((2_000 + 30) / CORES, abs=0.1)
    assert wait_ms("fair", 200.0) == 0.0


def test_weights_say_how_much_others_take_meanwhile() -> None:
    # Due in 100, 1,000 and 9,000 ms: weights of 1, 0.93 and 1/3.
    own = 1 - 2 / 3 * 900 / 8_900
    others_ms = 200 / own + 200 / own / 3
    expected_ms = pytest.approx((others_ms + 30) / CORES, abs=0.1)
    assert wait_ms("rdas", 200.0, EARLIER, LATER) == expected_ms
    assert wait_ms("rdas", 200.0, LATER) == pytest.approx((200 / 3 + 30) / CORES, abs=0.1)
    assert wait_ms("rdas", 200.0, EARLIER) == pytest.approx((3 * 200 + 10) / CORES, abs=0.1)


def test_importance_counts_among_the_weights() -> None:
    due = NOW_MS + 1_000
    less = other_open("less", 1_000.0, due, importance=0.25)
    assert wait_ms("rdas", 200.0, less) == pytest.approx(200 / 4 / CORES, abs=0.1)
    assert wait_ms("fair", 200.0, less) == pytest.approx(200 / CORES, abs=0.1)


def test_a_planned_batch_counts_if_its_deadline_is_earlier_or_where_it_shares() -> None:
    planned = OtherQuery(
        "planned", planned_at_ms=NOW_MS + 500, planned_core_ms=100.0,
        planned_deadline_at_ms=NOW_MS + 2_000,
    )  # fmt: skip
    assert wait_ms("edf", 200.0, planned) == 0.0
    assert wait_ms("fair", 200.0, planned) == pytest.approx(100 / CORES)
    assert wait_ms("fifo", 200.0, planned) == 0.0
    after = OtherQuery("after", planned_at_ms=NOW_MS + 1_500, planned_core_ms=100.0)
    assert wait_ms("fair", 200.0, after) == 0.0


def test_six_cores_are_shared_as_three_two_and_one() -> None:
    batches = {
        OWN: WantedBatch(1.0, NOW_MS + 1_000),
        **open_batches(
            Load((other_open("a", 1.0, NOW_MS + 500), other_open("b", 1.0, NOW_MS))), NOW_MS
        ),
    }
    parts = parts_of_cores("rdas", batches, NOW_MS)
    assert {query: 6 * part for query, part in parts.items()} == pytest.approx(
        {OWN: 1.0, "a": 2.0, "b": 3.0}
    )
    assert set(parts_of_cores("fair", batches, NOW_MS).values()) == {1 / 3}
    assert set(parts_of_cores("edf", batches, NOW_MS).values()) == {1.0}


def test_a_batch_that_is_cut_overtakes_a_planned_one_of_an_earlier_deadline_by_sharing() -> None:
    other = book_of(PolicyName.DEADLINE, 9_000.0)
    other.cut_made(Cut("test", left_ms=8_000.0, core_ms=50.0), Batch(9, None, 0.0, CORES), NOW_MS)
    overtaken = {}
    for schedule in (None, "edf", "fifo", "spark", "fair", "rdas"):
        waiting = book_of(PolicyName.DEADLINE, 1_000.0)
        offer = offer_of(9, 0.0, schedule=schedule)
        waiting.asked(offer, NOW_MS)
        assert not waiting.is_overtaken_by(other)  # nothing is planned
        waiting.decided(Wait(NOW_MS + 800, "", 50.0, NOW_MS + 1_000), offer, NOW_MS)
        overtaken[schedule] = waiting.is_overtaken_by(other)
    assert [schedule for schedule, is_so in overtaken.items() if is_so] == ["fair", "rdas"]


def test_the_moment_of_a_batch_comes_sooner_by_what_the_order_costs_it() -> None:
    # 4,000 rows are 80 ms of core-time. Beside the later batch they lose one of its tasks where the
    # earliest deadline goes first; where cores are shared as much as they take, or a third of it,
    # and half a task, as two cores come free one by one.
    book = book_of(PolicyName.DEADLINE, 1_000.0)
    learn_line(book)
    until_ms = {}
    for schedule in ("edf", "rdas", "fair", "fifo"):
        offer = offer_of(4_000, 300.0, schedule=schedule)
        decision = decide(book, offer, Load((LATER,)), NOW_MS)
        assert isinstance(decision, Wait), schedule
        until_ms[schedule] = decision.until_ms
    lost_ms = {schedule: until_ms["edf"] + 30 - at_ms for schedule, at_ms in until_ms.items()}
    core_ms = 0.01 * 4_000 * CORES
    assert lost_ms == pytest.approx(
        {
            "edf": 30.0,
            "rdas": (core_ms / 3 + 30) / CORES,
            "fair": (core_ms + 30) / CORES,
            "fifo": 500.0,
        },
        abs=1.5,
    )
