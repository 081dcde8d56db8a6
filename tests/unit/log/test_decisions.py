"""Decisions on appends, take-overs and markers, against a state written down by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import BadCall, Fenced
from penstock.log.decide import decide
from penstock.log.operations import Operation
from support.log.drafts import draft, make, mark, pending, rows, stamp, take
from support.log.state import State, refused


@pytest.fixture
def state() -> State:
    """A stream `s` of two substreams, and a query `q` at instance 1 (entry 1)."""
    state = State()
    state.do(make())
    state.do(take())
    return state


def test_rows_commit_themselves_at_their_last_entry(state: State) -> None:
    plan = state.do(rows(draft(0, 1, 2), draft(1, 3)))
    assert plan.answer.position == 3
    assert plan.answer.entries == (2, 3)
    ((name, showing),) = plan.showings
    assert name == "s"
    assert showing.commit.lsn == 3
    assert showing.commit.rows_total == 3
    assert [(place, covered.entries) for place, covered in showing.covered] == [
        (0, (2,)),
        (1, (3,)),
    ]
    assert [entry.head.tags for entry in plan.entries] == [("s/s/0",), ("s/s/1",)]


def test_no_rows_change_nothing_and_say_where_the_stream_is(state: State) -> None:
    state.do(rows(draft(0, 1)))
    plan = state.do(rows())
    assert not plan.changes
    assert (plan.answer.position, plan.answer.entries) == (2, ())


def test_a_repeated_sequence_is_answered_and_not_appended(state: State) -> None:
    first = state.do(rows(draft(0, 1), producer="p", sequence=5)).answer
    again = state.do(rows(draft(0, 1), producer="p", sequence=5))
    assert not again.changes
    assert again.answer.duplicate
    assert (again.answer.position, again.answer.entries) == (first.position, first.entries)
    older = state.do(rows(draft(0, 9), producer="p", sequence=4))
    assert not older.changes
    assert (older.answer.duplicate, older.answer.rows) == (True, 0)
    assert state.do(rows(draft(0, 1), producer="other", sequence=1)).changes


def test_a_stream_that_is_there_is_found_again_unless_it_differs(state: State) -> None:
    assert not state.do(make()).answer.created
    assert not state.do(replace_substreams(None)).answer.created
    code = refused(state, replace_substreams(3), BadCall, "it has 2 substreams, not 3")
    assert code == "stream_differs"


def replace_substreams(substreams: int | None) -> Operation:
    made = make()
    return type(made)(made.name, made.schema, substreams, made.key)


@pytest.mark.parametrize("substreams", [0, 257])
def test_a_stream_has_a_bounded_number_of_substreams(substreams: int) -> None:
    refused(State(), replace_substreams(substreams), BadCall, "1 to 256 substreams")


def test_pending_entries_show_nothing(state: State) -> None:
    plan = state.do(pending(draft(0, 1), draft(0, 2)))
    assert plan.answer == (2, 3)
    assert not plan.showings


def test_a_take_over_gives_the_next_instance_once_per_run(state: State) -> None:
    assert state.do(take(run="r2")).answer.instance == 2
    again = state.do(take(run="r2"))
    assert again.answer.instance == 2
    assert not again.changes


def test_a_run_that_was_taken_over_cannot_take_the_query_back(state: State) -> None:
    state.do(take(run="r2"))
    assert refused(state, take(run="r1"), Fenced, "taken over by the run r2") == "fenced"


def test_a_take_over_keeps_the_name_and_the_last_marker(state: State) -> None:
    state.do(take(run="r2", name="hot"))
    state.do(mark(instance=2, batch=4))
    taken = state.do(take(run="r3"))
    assert taken.answer.marker is not None
    assert taken.answer.marker.batch == 4
    assert taken.query is not None
    assert taken.query.name == "hot"


def test_a_marker_shows_exactly_what_it_names(state: State) -> None:
    state.do(pending(draft(0, 1), draft(1, 2), draft(0, 3)))
    plan = state.do(mark(4, 2))
    ((_, showing),) = plan.showings
    assert [(place, covered.entries) for place, covered in showing.covered] == [(0, (4, 2))]
    assert plan.entries[0].head.tags == ("s/s/0", "t/q")
    assert plan.answer == 5


def test_the_same_marker_again_gets_the_same_answer(state: State) -> None:
    state.do(pending(draft(0, 1)))
    first = state.do(mark(2)).answer
    state.do(mark(batch=1))
    again = state.do(mark(2))
    assert again.answer == first
    assert not again.changes


def test_another_marker_for_a_marked_batch_is_refused(state: State) -> None:
    state.do(pending(draft(0, 1), draft(0, 2)))
    state.do(mark(2))
    code = refused(state, mark(3), BadCall, "batch 0 has another marker at 4")
    assert code == "already_marked"


def test_a_batch_before_the_last_marked_one_is_refused(state: State) -> None:
    state.do(mark(batch=3))
    assert refused(state, mark(batch=2), BadCall, "batch 3 is marked") == "already_marked"


def test_an_old_instance_is_fenced_before_anything_else_is_looked_at(state: State) -> None:
    state.do(mark(batch=0))
    state.do(take(run="r2"))
    for operation in (mark(batch=0), mark(99, batch=1), pending(draft(0, 1))):
        assert refused(state, operation, Fenced, "its instance is 2") == "fenced"


def test_a_query_nobody_took_over_cannot_write(state: State) -> None:
    operation = pending(draft(0, 1), by=stamp(query="nobody"))
    assert refused(state, operation, BadCall, "take it over first") == "unknown_query"


@pytest.mark.parametrize(
    ("named", "fact"),
    [
        ((9,), "entry 9.* is not there"),
        ((2, 2), "is named twice"),
        ((4,), "is visible already, by itself"),
        ((3,), "carries another stamp"),
        ((1,), "carries another stamp"),
        ((5,), "is not of the stream 's'"),
    ],
)
def test_entries_that_are_not_the_attempts_own_are_refused(
    state: State, named: tuple[int, ...], fact: str
) -> None:
    state.do(pending(draft(0, 1)))
    state.do(pending(draft(0, 1), by=stamp(attempt=1)))
    state.do(rows(draft(0, 1)))
    state.do(make("other"))
    state.do(pending(draft(0, 1), stream="other"))
    assert refused(state, mark(*named), BadCall, fact) == "unknown_entries"


def test_entries_of_an_earlier_instance_are_refused(state: State) -> None:
    state.do(pending(draft(0, 1)))
    state.do(take(run="r2"))
    refused(state, mark(2, instance=2), BadCall, "carries another stamp")


def test_an_unknown_stream_and_a_missing_substream_are_refused(state: State) -> None:
    assert refused(state, rows(draft(0, 1), stream="no"), BadCall, "no stream 'no'") == (
        "unknown_stream"
    )
    assert refused(state, rows(draft(2, 1)), BadCall, "substreams 0 to 1, and 2") == (
        "substream_out_of_range"
    )


def test_a_decision_changes_nothing_by_itself(state: State) -> None:
    before = replace(state, entries=dict(state.entries))
    decide(rows(draft(0, 1)), state)
    assert (state.next_lsn, state.entries, state.last_commits) == (
        before.next_lsn,
        before.entries,
        before.last_commits,
    )
