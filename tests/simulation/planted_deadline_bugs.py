"""Bugs planted in simulated admission and scheduling, each by a part that differs in one point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from penstock.admission.book import QueryBook
from penstock.admission.decide import decide
from penstock.admission.decision import Decision, Wait
from penstock.admission.estimate.ours import OurEstimator
from penstock.admission.load import Load
from penstock.admission.offer import Offer
from penstock.fit.quantile import RecentValues
from penstock.simulate.cores import Order, TaskSet
from penstock.simulate.engine import Parts
from penstock.simulate.ordering import order_named
from penstock.simulate.world import QueryModel
from simulation.deadlines.checks import WatchedAdmission
from simulation.deadlines.worlds import Maker


class NeverWaited(RecentValues):
    """Measured waits that are forgotten."""

    def quantile(self, share: float, default: float = 0.0) -> float:
        return 0.0


class WaitingNotCounted(WatchedAdmission):
    """Decides as if its query had the cores to itself."""

    def open(self, query: int, model: QueryModel) -> None:
        super().open(query, model)
        self.book(query).waiting_ms = NeverWaited()

    def load(self, query: int) -> Load:
        return Load()


class MeanForHigh(OurEstimator):
    """An estimator that takes the middle for a time that few batches exceed."""

    def high(self, middle_ms: float) -> float:
        return middle_ms


class NoMargin(WatchedAdmission):
    """Aims at the mean, as the papers do."""

    def open(self, query: int, model: QueryModel) -> None:
        super().open(query, model)
        book = self.book(query)
        book.ours = book.estimators["ours"] = MeanForHigh()


class WaitsADeadlineTooLong(WatchedAdmission):
    """Waits for the moment that would be right with a deadline more, unless it gives way."""

    def __init__(self, cores: int, order: str) -> None:
        super().__init__(cores, order, decided_late)


def decided_late(book: QueryBook, offer: Offer, load: Load, now_ms: float) -> Decision:
    decision = decide(book, offer, load, now_ms)
    if isinstance(decision, Wait) and not decision.gives_way and offer.has_data:
        until_ms = decision.until_ms + (book.deadline_ms or 0.0)
        return msgspec.structs.replace(decision, until_ms=until_ms)
    return decision


def reversed_order(name: str) -> Order:
    """The latest deadline first."""
    right = order_named(name)

    def in_order(task_sets: Sequence[TaskSet], now_ms: float) -> Sequence[TaskSet]:
        return list(reversed(right(task_sets, now_ms)))

    return in_order


@dataclass(frozen=True)
class Planted:
    """`report` is in the sentence that names the bug; `maker` draws the worlds it shows in."""

    parts: Parts
    report: str
    maker: Maker


PLANTED = {
    "waiting not counted": Planted(
        Parts(admission=WaitingNotCounted), "misses its deadline", "crowded"
    ),
    "no margin": Planted(Parts(admission=NoMargin), "misses its deadline", "calm"),
    "a deadline waited too long": Planted(
        Parts(admission=WaitsADeadlineTooLong), "past its bound", "calm"
    ),
    "order reversed": Planted(
        Parts(admission=WatchedAdmission, order=reversed_order), "misses", "at once"
    ),
}
