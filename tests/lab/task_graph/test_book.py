"""What a transaction coordinator decides."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall, Fenced
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.messages import Step
from penstock_lab.baselines.task_graph.protocols.transaction.book import Book

FIRST_INSTANCE, SECOND_INSTANCE = Instance(1), Instance(2)


def begun() -> Book:
    book = Book()
    book.note(book.begin("t"), Lsn(1))
    return book


def noted(book: Book, step: Step | None) -> Step:
    assert step is not None
    book.note(step, Lsn(2))
    return step


def test_a_transaction_goes_from_registered_to_prepared_to_done() -> None:
    book = begun()
    assert noted(book, book.register("t", FIRST_INSTANCE, 1, ["a", "b"])).tags == ("a", "b")
    prepared = noted(book, book.prepare("t", FIRST_INSTANCE, 1, 1, 4, Lsn(9)))
    assert (prepared.first, prepared.last, prepared.offsets) == (1, 4, 9)
    assert book.unfinished() == ["t"]
    noted(book, book.done("t"))
    assert book.unfinished() == []
    assert book.line("t").tags == {"a", "b"}


def test_what_is_registered_is_not_registered_again() -> None:
    book = begun()
    noted(book, book.register("t", FIRST_INSTANCE, 1, ["a"]))
    assert noted(book, book.register("t", FIRST_INSTANCE, 1, ["a", "b"])).tags == ("b",)
    assert book.register("t", FIRST_INSTANCE, 1, ["b"]) is None


def test_the_next_transaction_registers_only_when_the_one_before_is_done() -> None:
    book = begun()
    noted(book, book.register("t", FIRST_INSTANCE, 1, ["a"]))
    noted(book, book.prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1)))
    with pytest.raises(BadCall, match="1 is prepared"):
        book.register("t", FIRST_INSTANCE, 2, ["a"])
    noted(book, book.done("t"))
    assert noted(book, book.register("t", FIRST_INSTANCE, 2, ["c"])).number == 2
    assert book.line("t").tags == {"c"}


def test_a_commit_asked_for_twice_is_prepared_once() -> None:
    book = begun()
    noted(book, book.register("t", FIRST_INSTANCE, 1, ["a"]))
    noted(book, book.prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1)))
    assert book.prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1)) is None
    noted(book, book.done("t"))
    assert book.prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1)) is None


def test_a_commit_of_nothing_registered_is_refused() -> None:
    with pytest.raises(BadCall, match="commits transaction 1, and 0 is done"):
        begun().prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1))


def test_an_older_instance_can_neither_register_nor_commit() -> None:
    book = begun()
    noted(book, book.register("t", FIRST_INSTANCE, 1, ["a"]))
    noted(book, book.begin("t"))
    with pytest.raises(Fenced):
        book.register("t", FIRST_INSTANCE, 1, ["b"])
    with pytest.raises(Fenced):
        book.prepare("t", FIRST_INSTANCE, 1, 1, 1, Lsn(1))
    assert book.begin("t").instance == Instance(3)


def test_the_steps_of_the_stream_make_the_same_book() -> None:
    book, steps = Book(), []
    for step in (
        Step("begin", "t", FIRST_INSTANCE, 0),
        Step("register", "t", FIRST_INSTANCE, 1, ("a",)),
        Step("prepare", "t", FIRST_INSTANCE, 1, (), 1, 3, Lsn(7)),
        Step("done", "t", FIRST_INSTANCE, 1),
        Step("begin", "t", SECOND_INSTANCE, 1),
        Step("register", "t", SECOND_INSTANCE, 2, ("b",)),
    ):
        steps.append(step)
        book.note(step, Lsn(len(steps)))
    again = Book()
    for lsn, step in enumerate(steps, 1):
        again.note(step, Lsn(lsn))
    assert again.lines == book.lines
    assert again.line("t").offsets == 7


def test_the_steps_that_are_needed_make_the_same_book_as_all_of_them() -> None:
    steps, book = [], Book()

    def note(step: Step | None) -> None:
        assert step is not None
        steps.append(step)
        book.note(step, Lsn(len(steps)))

    def has_it_all() -> None:
        again = Book()
        for lsn in range(min(book.needed()), len(steps) + 1):
            again.note(steps[lsn - 1], Lsn(lsn))
        kept, line = again.line("t"), book.line("t")
        assert (kept.instance, kept.number, kept.state) == (line.instance, line.number, line.state)
        assert (kept.offsets, kept.since) == (line.offsets, line.since)
        if line.state != "done":
            assert kept.tags == line.tags
        if line.state == "prepared":
            assert (kept.first, kept.last) == (line.first, line.last)

    note(book.begin("t"))
    for number in (1, 2, 3):
        for tags in (["a"], ["b", "c"]):
            note(book.register("t", FIRST_INSTANCE, number, tags))
            has_it_all()
        if number == 2:
            note(book.anew("t"))
            has_it_all()
        note(book.prepare("t", FIRST_INSTANCE, number, number, number, Lsn(10 * number)))
        has_it_all()
        note(book.done("t"))
        has_it_all()
    note(book.anew("t"))
    has_it_all()
    assert book.needed() == [Lsn(len(steps))]
    note(book.begin("t"))
    has_it_all()
    assert book.needed() == [Lsn(len(steps))]
    assert book.line("t").offsets == 30
