"""Controller of prefetching: from which places of the plan keys are hinted to a stateful operator.

One for each stateful operator of a run, told of every batch. Candidates are the places from which
hints can come, earliest first: the earlier, the more time there is to fetch, and the more rows may
still be dropped on their way. The rules, in order:

1. Nothing is active before reads have missed the cache and gone further than memory: a quicker
   miss costs less than a hint. Then the first candidate is.
2. A candidate of whose prefetches more than `unused_percent_max` were never read is discarded, and
   all before it, which see those rows too; never to come back.
3. Of the others the *latest* is chosen whose slack, as 99 % of the rows of the last batches had it,
   covers the 99th percentile of access and a margin; the earliest where none does, or where too
   few batches have been seen to tell.
4. The last candidate, D, stays on beside the chosen one, for what that missed.

A plan may have other candidates than the last one had; if that alone changes which are active, it
is a switch too.

All times are whole microseconds, so that the Scala twin, `penstock.prefetch.Controller`, gives the
same answers and the same sentences to `tests/vectors/prefetch.json`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec

from penstock.prefetch import switch_reasons as reasons

Candidate = Literal["A", "B", "C", "D"]
CANDIDATES: tuple[Candidate, ...] = get_args(Candidate)
"""Candidates in the order of the plan: rows waiting in the log, below the partial aggregate, right
below the shuffle, in the stateful task."""

LAST: Candidate = "D"
BATCHES_SEEN = 5
"""Batches with rows by which slack, access and use are judged, the newest; so a change of any of
them has moved the choice after five batches."""


class Prefetches(msgspec.Struct, frozen=True):
    """Prefetched entries of one candidate: how many a task came to read, and how many never.

    Both are judged when the rows that they were hinted for have been read: rows that wait in the
    log, at A, with the batch that reads them.
    """

    used: int
    unused: int


class OperatorBatch(msgspec.Struct, frozen=True):
    """A finished batch of one stateful operator, as the controller is told of it.

    `slack_us` of a candidate is the time from hint to read that 99 % of the batch's rows had, or
    would have had; `access_us` counts reads of the store by the time that none of them took longer
    than, the wait for one of the fetching threads included. A batch in which an attempt failed is
    not judged for unused prefetches: the attempt's hints are there twice.
    """

    batch: int
    rows: int
    misses: int
    prefetches: dict[Candidate, Prefetches] = {}
    slack_us: dict[Candidate, int] = {}
    access_us: dict[int, int] = {}
    has_failed_attempts: bool = False


class ControlTerms(msgspec.Struct, frozen=True):
    """Terms of the controller: two settings, and the access time up to which misses are cheap."""

    unused_percent_max: int = 0
    margin_us: int = 2_000
    memory_us: int = 50


class Switch(msgspec.Struct, frozen=True):
    """A change of the active candidates after a batch, and the sentence that says why."""

    batch: int
    active: tuple[Candidate, ...]
    reason: str


class Choice(msgspec.Struct, frozen=True):
    """A chosen candidate and why; `is_timely`: its slack covers access and margin."""

    candidate: Candidate
    is_timely: bool
    reason: str


class Controller(msgspec.Struct, frozen=True):
    """State of the controller of one operator between two batches; `after` gives the next one.

    `candidates` are those that the operator has, in the order of the plan; `seen` are the last
    batches with rows, `judged` the prefetches that the last batches reported, the newest last.
    """

    candidates: tuple[Candidate, ...]
    terms: ControlTerms = ControlTerms()
    has_missed: bool = False
    chosen: Candidate | None = None
    discarded: frozenset[Candidate] = frozenset()
    seen: tuple[OperatorBatch, ...] = ()
    judged: tuple[dict[Candidate, Prefetches], ...] = ()

    @property
    def remaining(self) -> tuple[Candidate, ...]:
        """Candidates that are not discarded, in the order of the plan."""
        return tuple(each for each in self.candidates if each not in self.discarded)

    @property
    def active(self) -> tuple[Candidate, ...]:
        """Candidates that hint in the next batch, in the order of the plan."""
        if self.chosen is None:
            return ()
        beside = LAST if LAST in self.remaining else self.chosen
        return tuple(each for each in self.remaining if each in (self.chosen, beside))

    def after(
        self, batch: OperatorBatch, candidates: Sequence[Candidate]
    ) -> tuple[Controller, Switch | None]:
        """The controller after a batch; and the switch, if other candidates are active now.

        `candidates` are those that the plan has now; it may have others than before.
        """
        informed, reason = self._with(candidates)._informed(batch)._without_worst()
        chosen, why = informed._choose(batch)
        decided = msgspec.structs.replace(informed, chosen=chosen)
        return decided, self._switch_to(decided, batch.batch, reason, why)

    def offered(
        self, candidates: Sequence[Candidate], batch: int
    ) -> tuple[Controller, Switch | None]:
        """The controller where the batch behind `batch` is planned again, with these candidates."""
        other = self._with(candidates)
        return other, self._switch_to(other, batch)

    def _with(self, candidates: Sequence[Candidate]) -> Controller:
        """The controller of an operator whose plan has these candidates now."""
        other = msgspec.structs.replace(self, candidates=tuple(candidates))
        if self.chosen is None or self.chosen in other.remaining:
            return other
        first = other.remaining[0] if other.remaining else None
        return msgspec.structs.replace(other, chosen=first)

    def _switch_to(self, decided: Controller, batch: int, *why: str) -> Switch | None:
        """The switch from this controller to the next one, if others are active then."""
        if decided.active == self.active:
            return None
        is_same_plan = decided.candidates == self.candidates
        plan = "" if is_same_plan else reasons.offered(decided.candidates)
        return Switch(batch, decided.active, reasons.joined(plan, *why))

    def _informed(self, batch: OperatorBatch) -> Controller:
        """The controller with the facts of a batch, and the decisions still as they were."""
        reported = batch.prefetches
        if batch.has_failed_attempts:
            reported = {}
        seen = self.seen if batch.rows == 0 else (*self.seen, batch)[-BATCHES_SEEN:]
        return msgspec.structs.replace(
            self,
            has_missed=self.has_missed or self._is_costly(batch),
            seen=seen,
            judged=(*self.judged, reported)[-BATCHES_SEEN:],
        )

    def _is_costly(self, batch: OperatorBatch) -> bool:
        """Whether reads of the batch missed the cache, and not all of them came from memory."""
        access_us = access_us_p99([batch.access_us])
        return batch.misses > 0 and access_us is not None and access_us > self.terms.memory_us

    def _without_worst(self) -> tuple[Controller, str]:
        """The controller without candidates that have too many unused prefetches, and why."""
        sums = _summed([pair for judged in self.judged for pair in judged.items()])
        percent_max = self.terms.unused_percent_max
        for place, candidate in reversed(list(enumerate(self.remaining))):
            prefetches = sums.get(candidate, Prefetches(0, 0))
            total = prefetches.used + prefetches.unused
            if 100 * prefetches.unused > percent_max * total:
                discarded = self.discarded.union(self.remaining[: place + 1])
                reason = reasons.discarded(candidate, prefetches.unused, total, percent_max)
                return msgspec.structs.replace(self, discarded=discarded), reason
        return self, ""

    def _choose(self, batch: OperatorBatch) -> tuple[Candidate | None, str]:
        """The candidate for the next batch, and why it is that."""
        if not self.has_missed or not self.candidates:
            return None, ""
        if not self.remaining:
            return None, reasons.nothing_left()
        if self.chosen is None and batch.misses > 0:
            first = self.remaining[0]
            return first, reasons.first(first, batch.misses, batch.batch)
        choice = self.choice()
        if choice is None:
            stays = self.chosen if self.chosen in self.remaining else self.remaining[0]
            return stays, reasons.unmeasured(stays)
        return choice.candidate, choice.reason

    def choice(self) -> Choice | None:
        """The latest candidate in time, else the earliest; None as long as nobody can tell."""
        if not self.remaining or len(self.seen) < BATCHES_SEEN:
            return None
        access_us = access_us_p99([batch.access_us for batch in self.seen])
        if access_us is None:
            return None
        needed_us = access_us + self.terms.margin_us
        for candidate in reversed(self.remaining):
            slack_us = slack_us_of(candidate, self.seen)
            if slack_us is not None and slack_us >= needed_us:
                reason = reasons.in_time(candidate, slack_us, access_us, self.terms.margin_us)
                return Choice(candidate, True, reason)
        first = self.remaining[0]
        return Choice(first, False, reasons.too_late(first, access_us, self.terms.margin_us))


def access_us_p99(histograms: Sequence[Mapping[int, int]]) -> int | None:
    """The time that 99 % of the reads in all histograms took at most; None without reads."""
    merged: Counter[int] = Counter()
    for histogram in histograms:
        merged.update(histogram)
    total = sum(merged.values())
    counted = 0
    for bound_us in sorted(merged):
        counted += merged[bound_us]
        if total > 0 and 100 * counted >= 99 * total:
            return bound_us
    return None


def slack_us_of(candidate: Candidate, batches: Sequence[OperatorBatch]) -> int | None:
    """The slack that 99 % of the rows of these batches had from a candidate.

    Batches are left out, those with the least slack first, while they have 1 % of the rows at most.
    None where a batch that counts does not tell.
    """
    total = sum(batch.rows for batch in batches)
    known = [(batch.slack_us.get(candidate, -1), batch.rows) for batch in batches]
    left_out = 0
    for slack_us, rows in sorted(known):
        left_out += rows
        if 100 * left_out > total:
            return None if slack_us < 0 else slack_us
    return None


def _summed(pairs: Sequence[tuple[Candidate, Prefetches]]) -> dict[Candidate, Prefetches]:
    sums: dict[Candidate, Prefetches] = {}
    for candidate, prefetches in pairs:
        before = sums.get(candidate, Prefetches(0, 0))
        sums[candidate] = Prefetches(
            before.used + prefetches.used, before.unused + prefetches.unused
        )
    return sums
