"""Admission in the simulated world: the server's own books and decisions, without its server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from penstock.admission.book import Batch, QueryBook
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Decision
from penstock.admission.estimate.cost import BatchCost
from penstock.admission.load import Load, load_beside
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.model.requests import BatchReport
from penstock.simulate.outcome import BatchRecord
from penstock.simulate.world import QueryModel

Decide: TypeAlias = Callable[[QueryBook, Offer, Load, float], Decision]


class Admits(Protocol):
    """The side of the server, as a simulated query sees it."""

    asked: int
    wake: Callable[[int], None]
    """Set by the engine: has a query look again that is held."""

    def open(self, query: int, model: QueryModel) -> None:
        """A query starts; queries are numbered from 0 in the order of their start."""
        ...

    def ask(
        self, query: int, rows: int, oldest_age_ms: float | None, *, is_first: bool, now_ms: float
    ) -> Decision:
        """The answer to a query with so many waiting rows; it has an age only if there are any."""
        ...

    def cut_made(self, batch: BatchRecord) -> None:
        """A batch begins; one without data was not asked for."""
        ...

    def batch_done(self, batch: BatchRecord) -> None:
        """A batch is visible, and its cost is known."""
        ...


class Admission:
    """One application's queries at a server. `decide` is the server's unless another is given."""

    def __init__(self, cores: int, order: str, decide: Decide = decide) -> None:
        self.asked = 0
        self.wake: Callable[[int], None] = lambda _: None
        self._cores = cores
        self._order = order
        self._decide = decide
        self._books: list[QueryBook] = []
        self._row_bytes: list[int] = []
        self._numbers: dict[tuple[int, int], int] = {}
        """The book's number of a cut, by query and by the simulation's own count."""
        self._answers: dict[int, tuple[Cut, Offer, bool]] = {}
        """The cut that a query was given, its offer, and whether others had reckoned with it."""

    def open(self, query: int, model: QueryModel) -> None:
        assert query == len(self._books)
        self._books.append(QueryBook(str(query), model.terms, name=model.name))
        self._row_bytes.append(model.row_bytes)

    def book(self, query: int) -> QueryBook:
        return self._books[query]

    def ask(
        self, query: int, rows: int, oldest_age_ms: float | None, *, is_first: bool, now_ms: float
    ) -> Decision:
        self.asked += 1
        book = self._books[query]
        waiting = Waiting(
            source=0,
            rows=rows,
            bytes=rows * self._row_bytes[query],
            oldest_age_ms=oldest_age_ms,
            cuts_by=CutsBy.ROWS,
        )
        offer = Offer((waiting,), self._cores, is_first=is_first, schedule=self._order)
        if is_first:
            book.asked(offer, now_ms)
            self._wake_those_giving_way(query)
        else:
            book.offered(offer, now_ms)
        was_planned = book.planned is not None
        decision = self._decide(book, offer, self.load(query), now_ms)
        book.decided(decision, offer, now_ms)
        if isinstance(decision, Cut):
            self._answers[query] = decision, offer, was_planned
        return decision

    def cut_made(self, batch: BatchRecord) -> None:
        if batch.has_data:
            decision, offer, was_planned = self._answers.pop(batch.query)
            contents = Batch(
                rows=batch.rows,
                bytes=batch.rows * self._row_bytes[batch.query],
                oldest_age_ms=offer.oldest_age_ms,
                cores=self._cores,
            )
            number = self._books[batch.query].cut_made(decision, contents, batch.cut_at_ms)
            self._numbers[batch.query, batch.cut] = number
            if not was_planned:
                self._wake_later_ones(batch.query)

    def batch_done(self, batch: BatchRecord) -> None:
        assert batch.visible_at_ms is not None
        assert batch.visible_ms is not None
        book = self._books[batch.query]
        if batch.has_data:
            report = BatchReport(
                cut=self._numbers.pop((batch.query, batch.cut)),
                rows=batch.rows,
                bytes=batch.rows * self._row_bytes[batch.query],
                queued_ms=batch.queued_ms,
                planning_ms=batch.planning_ms,
                core_ms=batch.core_ms,
                longest_task_ms=batch.longest_task_ms,
                tasks=batch.tasks,
                visible_ms=batch.visible_ms,
            )
            book.reported(report, batch.visible_at_ms)
        else:
            cost = BatchCost(
                cut=0,
                visible_ms=batch.visible_ms,
                rows=0,
                has_data=False,
                queued_ms=batch.queued_ms,
                planning_ms=batch.planning_ms,
                core_ms=batch.core_ms,
                longest_task_ms=batch.longest_task_ms,
                tasks=batch.tasks,
                cores=self._cores,
            )
            book.batch_done(cost, batch.visible_at_ms)
        self._wake_those_giving_way(batch.query)

    def _wake_later_ones(self, query: int) -> None:
        """Wake queries with a later deadline that this batch takes cores from, as a server does."""
        for other, book in enumerate(self._books):
            if other != query and book.is_overtaken_by(self._books[query]):
                self.wake(other)

    def _wake_those_giving_way(self, query: int) -> None:
        """Wake queries that wait for another one to finish, as a server does."""
        for other, book in enumerate(self._books):
            if other != query and book.gives_way:
                self.wake(other)

    def load(self, query: int) -> Load:
        """The other queries of the application."""
        return load_beside(str(query), (book.for_others() for book in self._books))
