"""Histories of one query that nobody wrote: no wait passes its bound, and no data stay for ever."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.admission.book import Batch, BatchReport, QueryBook
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait
from penstock.admission.load import Load, OtherQuery
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.admission.overload import GIVE_WAY_DEADLINES
from penstock.admission.policies.auto import USUAL_MAX
from penstock.admission.terms import PolicyName, Terms

TIMES = st.floats(0.0, 60_000.0)
STEPS = st.tuples(
    st.integers(0, 2_000_000),  # rows that arrive
    st.floats(0.0, 20_000.0),  # time that passes first
    st.floats(0.1, 30_000.0),  # cut to visible
    st.floats(0.0, 40_000.0),  # core-time
    st.floats(0.0, 5_000.0),  # in the queue
)
OTHERS = st.builds(
    OtherQuery,
    query=st.sampled_from(["a", "b"]),
    importance=st.floats(0.1, 10.0),
    deadline_ms=st.none() | st.floats(1.0, 60_000.0),
    usual_ms=TIMES,
    core_share=st.floats(0.0, 4.0),
    is_late=st.booleans(),
    open_core_ms=TIMES,
    open_at_ms=TIMES,
    open_predicted_ms=TIMES,
    open_until_ms=st.just(1e12),
    open_deadline_at_ms=st.none() | st.floats(0.0, 1e6),
    open_task_ms=TIMES,
    is_open=st.booleans(),
    planned_at_ms=st.none() | st.floats(0.0, 1e6),
    planned_core_ms=TIMES,
    planned_deadline_at_ms=st.none() | st.floats(0.0, 1e6),
)
QUERY_HISTORIES = given(
    st.sampled_from(list(PolicyName)),
    st.floats(1.0, 60_000.0),
    st.booleans(),
    st.lists(STEPS, min_size=1, max_size=12),
    st.lists(OTHERS, max_size=2),
)
"""The arguments of `check_waits`."""


def bound_ms(book: QueryBook, offer: Offer, now_ms: float) -> float:
    """The moment past which the policy of this book must not wait with these rows."""
    policy, deadline_ms = book.terms.policy, book.deadline_ms
    if policy is PolicyName.FIXED:
        return (book.last_cut_at_ms or now_ms) + (book.terms.interval_ms or 0.0)
    if policy is PolicyName.SLIDE:
        return now_ms + (book.terms.slide_ms or 0.0) - offer.oldest_age_ms
    if policy is PolicyName.RUNNING_MEAN:
        past_ms = book.latencies_ms
        return now_ms + sum(past_ms) / max(len(past_ms) - 1, 1) - offer.oldest_age_ms
    if deadline_ms is None:  # auto that has found none yet
        usual_ms = USUAL_MAX * max(book.ours.usual_ms(), 1.0)
        return max((book.last_cut_at_ms or now_ms) + usual_ms, now_ms + 5_000.0)
    return now_ms + deadline_ms - offer.oldest_age_ms


def check_waits(
    policy: PolicyName,
    deadline_ms: float,
    has_deadline: bool,
    steps: list[tuple[int, float, float, float, float]],
    others: list[OtherQuery],
) -> None:
    """A query that is asked about, cut and reported step by step: each wait is within its bound."""
    deadline = deadline_ms if has_deadline or policy is not PolicyName.AUTO else None
    book = QueryBook("q", Terms(deadline, policy, deadline_ms, deadline_ms))
    now_ms, waiting, oldest_at_ms = 0.0, 0, 0.0
    for arrived, passed_ms, visible_ms, core_ms, queued_ms in steps:
        oldest_at_ms = now_ms if not waiting else oldest_at_ms
        waiting += arrived
        now_ms += passed_ms
        age_ms = now_ms - oldest_at_ms if waiting else None
        offer = Offer((Waiting(0, waiting, waiting * 60, None, age_ms, CutsBy.ROWS),), 2)
        book.asked(offer, now_ms)
        decision = decide(book, offer, Load(tuple(others)), now_ms)
        book.decided(decision, offer, now_ms)
        if isinstance(decision, Wait):
            assert math.isfinite(decision.until_ms)
            assert decision.until_ms > now_ms - 1e-6
            if waiting:
                bound = bound_ms(book, offer, now_ms)
                if decision.gives_way and book.deadline_ms is not None:
                    bound += GIVE_WAY_DEADLINES * book.deadline_ms
                assert decision.until_ms <= bound + 1e-6, decision.reason
            continue
        assert waiting, "a batch of nothing"
        assert decision.rows_max is None or 0 < decision.rows_max < waiting
        assert decision.bytes_max is None
        assert 0.0 < decision.weight <= 1.0
        assert decision.left_ms is None or math.isfinite(decision.left_ms)
        taken = min(waiting, decision.rows_max or waiting)
        number = book.cut_made(decision, Batch(taken, taken * 60, age_ms or 0.0, 2), now_ms)
        now_ms += visible_ms
        waiting -= taken
        oldest_at_ms = now_ms
        report = BatchReport(
            number, taken, core_ms=core_ms, queued_ms=queued_ms, visible_ms=visible_ms
        )
        book.reported(report, now_ms)


test_no_wait_passes_its_bound = settings(max_examples=300, deadline=None)(
    QUERY_HISTORIES(check_waits)
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(PolicyName)), st.integers(1, 10**7), st.lists(OTHERS, max_size=2))
def test_whoever_must_not_wait_gets_everything(
    policy: PolicyName, rows: int, others: list[OtherQuery]
) -> None:
    book = QueryBook("q", Terms(1_000.0, policy, 1_000.0, 1_000.0, 0.05))
    offer = Offer((Waiting(0, rows, None, None, 0.0, CutsBy.ROWS),), 2, must_cut=True)
    decision = decide(book, offer, Load(tuple(others)), 0.0)
    assert isinstance(decision, Cut)
    assert decision.rows_max is None
