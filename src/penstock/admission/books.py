"""The books of all queries that one server admits batches of."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.admission.ages import Ages
from penstock.admission.book import QueryBook
from penstock.admission.chain import Stage, chain_deadlines
from penstock.admission.load import Load, load_beside
from penstock.admission.terms import CountedFrom, Terms
from penstock.errors import BadCall
from penstock.model.plan_notes import NOTES_MAX, PlanNoteBody
from penstock.model.requests import BatchReport

QUERIES_MAX = 1_000
AWAY_MS = 10_000.0
"""A query counts as stopped, and others no longer reckon with it, when it has asked nothing for
this long, no question of it is held, and no batch of it is under way."""
SHOWN_MS = 600_000.0
"""Figures of a query are shown until it has asked nothing for this long."""
CHAIN_MS = 1_000.0
"""How often chains are divided anew."""
WRITES_MAX = 64
RULE_TIMES_MAX = 256
"""More than a driver sends again."""


@dataclass
class KeptBook:
    """A query's book, the ages of what waits for it, and the streams it reads and writes.

    `questions_held`: how many of its questions are not answered yet. `warned_of_ms`: the deadline
    that was said to be below the floor. `notes`: the last of each rule on each operator.
    `cuts_with_rule_time`: the last cuts whose rule time is counted as planning.
    """

    book: QueryBook
    heard_at_ms: float
    ages: Ages = field(default_factory=Ages)
    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    questions_held: int = 0
    warned_of_ms: float | None = None
    notes: dict[tuple[str, int], PlanNoteBody] = field(default_factory=dict)
    cuts_with_rule_time: deque[int] = field(default_factory=lambda: deque(maxlen=RULE_TIMES_MAX))

    def noted(self, notes: Iterable[PlanNoteBody]) -> None:
        """Keep notes on the query's plan in place of earlier ones on the same; at the bound the
        one that has stood longest is forgotten."""
        for note in notes:
            about = (note.rule, note.operator)
            self.notes.pop(about, None)
            self.notes[about] = note
            if len(self.notes) > NOTES_MAX:
                del self.notes[next(iter(self.notes))]

    def plan_notes(self) -> tuple[PlanNoteBody, ...]:
        """The notes on the query's plan, by rule and operator."""
        return tuple(note for _, note in sorted(self.notes.items(), key=lambda item: item[0]))

    def count_rule_time(self, report: BatchReport) -> None:
        """Count the time of the driver's rule, which carries plans out, as planning: once for each
        cut, as drivers send reports again to be safe."""
        if report.plan is not None and report.cut not in self.cuts_with_rule_time:
            self.cuts_with_rule_time.append(report.cut)
            self.book.totals.planning_ms += report.plan.rule_ms

    def is_running(self, now_ms: float) -> bool:
        """Whether the query asks, waits for an answer, or works on a batch."""
        if self.questions_held or now_ms - self.heard_at_ms < AWAY_MS:
            return True
        cut = self.book.open_cut
        return cut is not None and now_ms < cut.expires_at_ms


class AskingQuery(NamedTuple):
    """The query that asks, as its question names it."""

    query: str
    name: str | None
    application: str
    instance: int | None


class Books:
    """Books by query, bounded: at the bound the one not heard of longest is forgotten, and its
    query asks again for its first, small batches."""

    def __init__(self, first_cut: int) -> None:
        self._kept: OrderedDict[str, KeptBook] = OrderedDict()
        self._first_cut = first_cut
        self._divided_at_ms: float | None = None

    def heard(self, asking: AskingQuery, terms: Terms, now_ms: float) -> KeptBook:
        """The book of a query that asks; new for one not seen before, its cuts void for a new
        run."""
        kept = self._kept.get(asking.query)
        if kept is None:
            book = QueryBook(
                asking.query,
                terms,
                name=asking.name,
                application=asking.application,
                instance=asking.instance,
                first_cut=self._first_cut,
            )
            kept = self._kept[asking.query] = KeptBook(book, now_ms)
            if len(self._kept) > QUERIES_MAX:
                self._kept.popitem(last=False)
        self._kept.move_to_end(asking.query)
        kept.heard_at_ms = now_ms
        book = kept.book
        if (book.instance, book.application) != (asking.instance, asking.application):
            book.run_started(asking.instance)
            kept.ages = Ages()
            kept.notes.clear()
        book.name, book.application = asking.name or book.name, asking.application
        if book.terms != terms:
            book.terms_changed(terms)
        return kept

    def known(self, query: str) -> KeptBook | None:
        """The book of a query by its id."""
        return self._kept.get(query)

    def named(self, query: str) -> KeptBook:
        """The book of a query by its id or its name; of several with a name, the one that asked
        last."""
        kept = self._kept.get(query)
        if kept is not None:
            return kept
        for kept in reversed(self._kept.values()):
            if kept.book.name == query:
                return kept
        raise BadCall(
            f"admission knows no query '{query}': it has asked this server for no batch with a "
            "deadline or a policy since the server started; see 'penstock query list'. How a query "
            "without these was planned its own driver tells: penstock.plan_notes(query)",
            code="unknown_query",
            status=404,
        )

    def shown(self, now_ms: float) -> list[QueryBook]:
        """The books of queries that run, or have lately."""
        return [kept.book for kept in self._kept.values() if now_ms - kept.heard_at_ms < SHOWN_MS]

    def load_for(self, book: QueryBook, now_ms: float) -> Load:
        """The other queries of the application that have not stopped."""
        return load_beside(
            book.query,
            (
                kept.book.for_others()
                for kept in self._kept.values()
                if kept.book.application == book.application and kept.is_running(now_ms)
            ),
        )

    def divide_chains(self, now_ms: float) -> None:
        """Divide end-to-end deadlines over their stages that run, once in a while."""
        if self._divided_at_ms is not None and now_ms - self._divided_at_ms < CHAIN_MS:
            return
        self._divided_at_ms = now_ms
        deadlines = chain_deadlines(
            Stage(
                kept.book.query,
                kept.reads,
                kept.writes,
                kept.book.ours.usual_ms(),
                kept.book.operator_deadline_ms or kept.book.terms.deadline_ms,
                kept.book.terms.origin is CountedFrom.ORIGIN,
            )
            for kept in self._kept.values()
            if kept.is_running(now_ms)
        )
        for query, kept in self._kept.items():
            kept.book.chain_deadline_ms = deadlines.get(query)
