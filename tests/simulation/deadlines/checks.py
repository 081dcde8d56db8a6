"""Checks of a simulated run: no wait past its bound, nobody starves, deadlines are kept."""

from __future__ import annotations

import math

from penstock.admission.book import QueryBook
from penstock.admission.decision import Decision, Wait
from penstock.admission.overload import GIVE_WAY_DEADLINES, GIVE_WAY_MS
from penstock.admission.policies.auto import USUAL_MAX
from penstock.admission.terms import PolicyName
from penstock.simulate.admitting import Admission
from penstock.simulate.engine import Parts, simulate
from penstock.simulate.outcome import Outcome
from simulation.deadlines.worlds import MAKERS, Maker

ROUNDING_MS = 0.001
LATE_MAX: dict[Maker, float] = {"at once": 0.0, "calm": 0.18, "crowded": 0.18, "beside": 0.18}
"""The share of a query's batches that may miss its deadline, in worlds where it can be kept. Ours
aims at a few in a hundred; whoever aims at the mean misses with many more."""


class Violation(AssertionError):
    """A promise that a simulated run broke, and how to see it again."""

    def __init__(self, sentence: str, maker: Maker, seed: int) -> None:
        super().__init__(
            f"{sentence}\nsee it again: PYTHONPATH=tests python -c "
            f'"from simulation.deadlines.checks import *; checked({maker!r}, {seed})"'
        )


class WaitTooLong(Exception):
    """A wait past its bound, raised where it is decided."""


class WatchedAdmission(Admission):
    """The server's decisions, and a look at every wait among them."""

    def ask(
        self, query: int, rows: int, oldest_age_ms: float | None, *, is_first: bool, now_ms: float
    ) -> Decision:
        decision = super().ask(query, rows, oldest_age_ms, is_first=is_first, now_ms=now_ms)
        if isinstance(decision, Wait) and oldest_age_ms is not None:
            book = self.book(query)
            bound_ms = wait_bound_ms(book, decision, oldest_age_ms, now_ms)
            if decision.until_ms > bound_ms + ROUNDING_MS:
                raise WaitTooLong(
                    f"{book.name} at {now_ms:.0f} ms waits until {decision.until_ms:.0f}, "
                    f"{decision.until_ms - bound_ms:.0f} ms past its bound: {decision.reason}"
                )
        return decision


def wait_bound_ms(book: QueryBook, wait: Wait, oldest_age_ms: float, now_ms: float) -> float:
    """The latest moment up to which a policy may hold rows back that wait; one deadline later for
    a wait that gives way to a more important query."""
    arrived_ms = now_ms - oldest_age_ms
    terms = book.terms
    match terms.policy:
        case PolicyName.ASAP:
            return -math.inf
        case PolicyName.FIXED:
            return (book.last_cut_at_ms or 0.0) + (terms.interval_ms or 0.0)
        case PolicyName.SLIDE:
            return arrived_ms + (terms.slide_ms or 0.0)
        case PolicyName.RUNNING_MEAN:
            # As printed the mean of two batches is their sum.
            return arrived_ms + 2 * max(book.latencies_ms, default=0.0)
        case PolicyName.ZSTREAM:
            return arrived_ms + (book.deadline_ms or 0.0)
        case PolicyName.DEADLINE | PolicyName.AUTO if book.deadline_ms is not None:
            late_deadlines = GIVE_WAY_DEADLINES if wait.gives_way else 0.0
            return arrived_ms + book.deadline_ms * (1 + late_deadlines)
        case _:
            usual_ms = max(book.ours.usual_ms(), 1.0)
            since_cut_ms = (book.last_cut_at_ms or 0.0) + USUAL_MAX * usual_ms
            return max(arrived_ms + GIVE_WAY_MS, since_cut_ms)


def checked(maker: Maker, seed: int, parts: Parts | None = None) -> Outcome:
    """The outcome of a world in which every promise was kept."""
    world = MAKERS[maker](seed)
    try:
        outcome = simulate(world, parts or Parts(admission=WatchedAdmission))
    except WaitTooLong as error:
        raise Violation(str(error), maker, seed) from error
    for number, query in enumerate(outcome.queries):
        if query.rows_never_visible:
            sentence = f"{query.name} starves: {query.rows_never_visible} rows are never visible"
            raise Violation(sentence, maker, seed)
        late = late_batches(outcome, number)
        if late > LATE_MAX.get(maker, 1.0):
            sentence = (
                f"{query.name} misses its deadline of {query.deadline_ms:g} ms with {late:.0%} of "
                f"its batches and {query.miss_ratio:.1%} of its rows"
            )
            raise Violation(sentence, maker, seed)
    return outcome


def late_batches(outcome: Outcome, query: int) -> float:
    """The share of a query's batches with data whose oldest row was visible too late."""
    deadline_ms = outcome.queries[query].deadline_ms
    batches = [each for each in outcome.batches if each.query == query and each.has_data]
    late = [
        batch
        for batch in batches
        if deadline_ms is not None
        and batch.visible_at_ms is not None
        and batch.visible_at_ms - batch.oldest_at_ms > deadline_ms + ROUNDING_MS
    ]
    return len(late) / max(len(batches), 1)
