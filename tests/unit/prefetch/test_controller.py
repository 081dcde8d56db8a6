"""Choice of the places that keys are hinted from: the vectors, and what holds in every history."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.prefetch.controller import (
    BATCHES_SEEN,
    CANDIDATES,
    Candidate,
    Controller,
    ControlTerms,
    OperatorBatch,
    Prefetches,
    Switch,
    access_us_p99,
    slack_us_of,
)
from support.prefetch_vectors import FILE, SCENES, answers, reasons_of, vectors

COUNTS = st.integers(0, 1_000)
TIMES_US = st.integers(0, 200_000)
OFFERS = st.sets(st.sampled_from(CANDIDATES)).map(lambda chosen: tuple(sorted(chosen)))
FACTS = st.builds(
    OperatorBatch,
    batch=st.just(0),
    rows=st.sampled_from([0, 1, 50, 1_000, 20_000]),
    misses=st.sampled_from([0, 0, 7]),
    prefetches=st.dictionaries(
        st.sampled_from(CANDIDATES),
        st.builds(
            Prefetches,
            used=COUNTS,
            unused=st.sampled_from([0, 0, 0, 0, 0, 0, 3]),
        ),
    ),
    slack_us=st.dictionaries(st.sampled_from(CANDIDATES), TIMES_US),
    access_us=st.dictionaries(st.sampled_from([3, 40, 500, 9_000, 70_000]), COUNTS, max_size=3),
    has_failed_attempts=st.booleans(),
)
TERMS = st.builds(
    ControlTerms,
    unused_percent_max=st.sampled_from([0, 0, 5, 100]),
    margin_us=st.sampled_from([0, 2_000]),
)
HISTORIES = st.lists(FACTS, max_size=30)


def states(
    candidates: tuple[Candidate, ...], terms: ControlTerms, history: list[OperatorBatch]
) -> list[tuple[OperatorBatch, Controller]]:
    """Each batch of a history, numbered, and the controller after it."""
    controller = Controller(candidates, terms)
    steps = []
    for number, facts in enumerate(history):
        numbered = OperatorBatch(
            number,
            facts.rows,
            facts.misses,
            facts.prefetches,
            facts.slack_us,
            facts.access_us,
            facts.has_failed_attempts,
        )
        before = controller.active
        controller, switch = controller.after(numbered, candidates)
        check_switch(before, controller, switch, number)
        steps.append((numbered, controller))
    return steps


def check_switch(
    before: tuple[Candidate, ...], controller: Controller, switch: Switch | None, batch: int
) -> None:
    """Whatever other candidates are active than before, a switch says so, and why."""
    assert (switch is not None) == (controller.active != before)
    if switch is not None:
        assert switch.active == controller.active
        assert switch.batch == batch
        assert switch.reason


def test_the_vectors_are_what_their_program_writes() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8")) == vectors()


@given(OFFERS, TERMS, HISTORIES)
def test_nothing_is_active_before_misses_that_went_further_than_memory(
    candidates: tuple[Candidate, ...], terms: ControlTerms, history: list[OperatorBatch]
) -> None:
    has_missed = False
    for facts, controller in states(candidates, terms, history):
        access_us = access_us_p99([facts.access_us])
        has_missed = has_missed or (facts.misses > 0 and (access_us or 0) > terms.memory_us)
        assert has_missed or controller.active == ()


@given(OFFERS, TERMS, HISTORIES)
def test_a_discarded_candidate_stays_discarded_and_never_hints_again(
    candidates: tuple[Candidate, ...], terms: ControlTerms, history: list[OperatorBatch]
) -> None:
    gone: set[Candidate] = set()
    for _, controller in states(candidates, terms, history):
        assert gone <= controller.discarded
        gone |= controller.discarded
        assert not gone & set(controller.active)
        # All before a discarded candidate are discarded with it.
        latest = max(gone, default="")
        assert gone == {each for each in candidates if each <= latest}


@given(OFFERS, TERMS, HISTORIES)
def test_the_latest_that_covers_access_is_chosen_wherever_one_does(
    candidates: tuple[Candidate, ...], terms: ControlTerms, history: list[OperatorBatch]
) -> None:
    before: Controller = Controller(candidates, terms)
    for _, controller in states(candidates, terms, history):
        access_us = access_us_p99([each.access_us for each in controller.seen])
        is_measured = len(controller.seen) == BATCHES_SEEN and access_us is not None
        if before.chosen is not None and controller.remaining and is_measured:
            needed_us = (access_us or 0) + terms.margin_us
            in_time = [
                each
                for each in controller.remaining
                if (slack_us := slack_us_of(each, controller.seen)) is not None
                and slack_us >= needed_us
            ]
            assert controller.chosen == (in_time[-1] if in_time else controller.remaining[0])
        before = controller


@given(OFFERS, TERMS, HISTORIES)
def test_the_last_candidate_is_active_beside_any_other(
    candidates: tuple[Candidate, ...], terms: ControlTerms, history: list[OperatorBatch]
) -> None:
    for _, controller in states(candidates, terms, history):
        active = controller.active
        assert set(active) <= set(controller.remaining)
        assert len(active) <= 2
        if active and "D" in controller.remaining:
            assert active[-1] == "D"


@given(OFFERS, HISTORIES)
def test_no_share_of_unused_prefetches_is_too_large_where_all_may_be_unused(
    candidates: tuple[Candidate, ...], history: list[OperatorBatch]
) -> None:
    terms = ControlTerms(unused_percent_max=100)
    assert all(not after.discarded for _, after in states(candidates, terms, history))


@given(OFFERS, OFFERS, TERMS, HISTORIES)
def test_other_candidates_in_the_plan_bring_back_none_that_is_discarded(
    candidates: tuple[Candidate, ...],
    others: tuple[Candidate, ...],
    terms: ControlTerms,
    history: list[OperatorBatch],
) -> None:
    for _, controller in states(candidates, terms, history):
        other, _ = controller.offered(others, 0)
        assert set(other.active) <= set(others) - controller.discarded
        assert bool(other.active) <= bool(controller.active)


@given(st.lists(st.tuples(FACTS, OFFERS, OFFERS), max_size=10), TERMS)
def test_other_candidates_in_the_plan_are_no_switch_without_a_reason(
    history: list[tuple[OperatorBatch, tuple[Candidate, ...], tuple[Candidate, ...]]],
    terms: ControlTerms,
) -> None:
    controller = Controller(CANDIDATES, terms)
    for facts, planned, planned_again in history:
        before = controller.active
        controller, switch = controller.after(facts, planned)
        check_switch(before, controller, switch, facts.batch)
        before = controller.active
        controller, switch = controller.offered(planned_again, facts.batch)
        check_switch(before, controller, switch, facts.batch)


def test_a_switch_names_the_candidates_that_the_plan_has_now() -> None:
    first, other, again = reasons_of(SCENES["a batch is planned again with other candidates"])
    assert first.startswith("10 reads of batch 0 missed the cache")
    assert other == "the candidates in the plan are now C D"
    assert again == "the candidates in the plan are now none"


def test_a_change_of_access_moves_the_choice_after_five_batches() -> None:
    scene = SCENES["reads get faster: five batches to move"]
    chosen = [each["active"][0] for each in answers(scene)]
    assert chosen[:6] == ["A", "A", "A", "A", "B", "B"]
    assert chosen[6:] == ["B", "B", "B", "B", "C", "C"]


def test_a_switch_says_in_a_sentence_what_was_measured() -> None:
    first, discarded, moved = reasons_of(SCENES["a static join drops rows, then reads get faster"])
    assert first.startswith("10 reads of batch 0 missed the cache: A hints")
    assert "30 of 400 entries fetched for hints of A were never read, and 0 % may be" in discarded
    assert discarded.endswith("B is the earliest of the rest")
    assert "C is the latest whose slack for 99 % of rows, 30.0 ms, covers p99" in moved
