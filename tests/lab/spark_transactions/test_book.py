"""What the coordinator of queries knows after steps that come in their order, or late."""

from __future__ import annotations

import pytest

from penstock.model.ids import Lsn
from penstock_lab.baselines.spark_transactions.book import Book, Step

MARKER = {"instance": 2, "batch": 6}
PREPARED = Step("prepare", "q", 2, 6, marker=MARKER)
OPEN = Step("register", "q", 2, 6, (("s", 0),))


def noted(*steps: Step) -> Book:
    book = Book()
    for lsn, step in enumerate(steps, 1):
        book.note(step, Lsn(lsn))
    return book


@pytest.mark.parametrize(
    "late",
    [
        Step("done", "q", 2, 5),
        Step("prepare", "q", 2, 5, marker={}),
        Step("register", "q", 2, 5, (("s", 1),)),
        Step("prepare", "q", 1, 9, marker={}),
        Step("done", "q", 1, 9),
    ],
)
def test_a_late_step_of_a_batch_before_leaves_what_is_prepared(late: Step) -> None:
    book = noted(OPEN, PREPARED, late)
    assert book.unfinished() == ["q"]
    newest = book.newest("q")
    assert newest is not None
    assert (newest.batch, newest.marker, newest.substreams) == (6, MARKER, {("s", 0)})


@pytest.mark.parametrize(
    "late",
    [Step("done", "q", 2, 5), Step("prepare", "q", 2, 5, marker={}), Step("done", "q", 1, 9)],
)
def test_a_late_step_leaves_what_is_registered(late: Step) -> None:
    assert noted(OPEN, late).missing("q", 2, 6, {("s", 0)}) == set()


@pytest.mark.parametrize("later", [(2, 7), (3, 0)])
def test_a_later_batch_says_that_the_one_before_it_is_over(later: tuple[int, int]) -> None:
    """Its end may be missing, if the coordinator was killed before it could say so."""
    newest = noted(OPEN, PREPARED, Step("prepare", "q", *later, marker={})).newest("q")
    assert newest is not None
    assert (newest.instance, newest.batch, newest.state) == (*later, "prepared")


def test_an_end_of_which_nothing_else_is_known_begins_nothing() -> None:
    assert noted(Step("done", "q", 2, 5)).newest("q") is None


def test_a_query_that_was_forgotten_and_counts_from_one_again_is_a_new_one() -> None:
    book = noted(OPEN, Step("register", "q", 1, 7, (("s", 3),)))
    assert book.missing("q", 1, 7, {("s", 3)}) == set()


def test_nothing_of_what_is_done_is_needed_and_all_of_what_is_not() -> None:
    other = Step("register", "p", 1, 0, (("s", 0),))
    more = Step("register", "q", 2, 6, (("s", 1),))
    steps = [OPEN, other, more, PREPARED]
    assert noted(*steps).needed() == [1, 2]
    assert noted(*steps, Step("done", "q", 2, 6)).needed() == [2]
    assert noted(*steps, PREPARED, Step("done", "q", 2, 6), PREPARED).needed() == [2], "once done"


@pytest.mark.parametrize("steps", [(OPEN,), (OPEN, PREPARED)])
def test_one_step_says_anew_all_of_what_stands_still(steps: tuple[Step, ...]) -> None:
    book = noted(*steps)
    assert book.said_before(Lsn(2)) == ["q"]
    step = book.anew("q")
    book.note(step, Lsn(9))
    assert book.needed() == [9]
    assert book.said_before(Lsn(9)) == []
    again = noted(step)
    assert again.unfinished() == book.unfinished()
    assert again.missing("q", 2, 6, {("s", 0)}) == set()
