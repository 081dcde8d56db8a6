"""The book of one query: its terms, its open cuts, what its batches cost, and how it fared.

Pure: time is passed in, as milliseconds of one monotonic clock; only its methods change it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping

import msgspec

from penstock.admission.arrivals import Arrivals
from penstock.admission.auto_deadline import AutoDeadline
from penstock.admission.contention import takes_cores
from penstock.admission.cuts import Batch, DecisionLine, OpenCut, Totals
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.estimate.cost import BatchCost, Estimator
from penstock.admission.estimate.ours import OurEstimator
from penstock.admission.estimate.papers import LmStreamEstimator, ZStreamEstimator
from penstock.admission.load import OtherQuery
from penstock.admission.offer import Offer
from penstock.admission.terms import PolicyName, Terms
from penstock.fit.quantile import RecentValues
from penstock.model.requests import BatchReport

__all__ = ["Batch", "BatchCost", "BatchReport", "OpenCut", "QueryBook"]

CUTS_MAX = 8
DECISIONS_MAX = 64
HISTORY_MAX = 256
WAITING_HIGH = 0.95
UNASKED_HIGH = 0.9
UNASKED_FADING = 0.9
"""A first question that is answered with a cut measures no such time: so the estimate shrinks by
this factor, and a wait is tried again some batches later."""
SHARE_MEMORY = 0.9


class QueryBook:
    """All that is known of one query. Cuts are numbered from `first_cut`; a server that starts anew
    begins higher than it ever came, so that reports of old cuts are known as such."""

    def __init__(
        self,
        query: str,
        terms: Terms,
        *,
        name: str | None = None,
        application: str = "",
        instance: int | None = None,
        first_cut: int = 1,
    ) -> None:
        self.query = query
        self.terms = terms
        self.name = name
        self.application = application
        self.instance = instance
        self.ours = OurEstimator()
        self.zstream = ZStreamEstimator()
        self.lmstream = LmStreamEstimator()
        self.estimators: dict[str, Estimator] = {
            "ours": self.ours,
            "zstream": self.zstream,
            "lmstream": self.lmstream,
        }
        self.errors = {estimator: RecentValues() for estimator in self.estimators}
        self.arrivals = Arrivals()
        self.auto = AutoDeadline()
        self.cuts: OrderedDict[int, OpenCut] = OrderedDict()
        self.decisions: deque[DecisionLine] = deque(maxlen=DECISIONS_MAX)
        self.costs: deque[BatchCost] = deque(maxlen=HISTORY_MAX)
        self.latencies_ms: deque[float] = deque(maxlen=HISTORY_MAX)
        self.slack_ms = RecentValues()
        self.waiting_ms = RecentValues()
        self.unasked_ms = RecentValues()
        self.moment_late_ms = RecentValues()
        self.totals = Totals()
        self.last_cut_at_ms: float | None = None
        self.planned: Wait | None = None
        self._first_wait_at_ms: float | None = None
        self.operator_deadline_ms: float | None = None
        self.chain_deadline_ms: float | None = None
        self.cores, self.schedule = 1, ""
        self.core_share = 0.0
        self.is_late = False
        self._next_cut = first_cut
        self._cost_at_ms: float | None = None
        self._learned: deque[int] = deque(maxlen=HISTORY_MAX)
        self._for_others: OtherQuery | None = None

    @property
    def deadline_ms(self) -> float | None:
        """The deadline in force: that of an operator, else of the terms, else the one that `auto`
        has found; in a chain, no later than the query's part of the whole."""
        own = self.operator_deadline_ms or self.terms.deadline_ms
        if own is None and self.terms.policy is PolicyName.AUTO:
            own = self.auto.deadline_ms
        if own is None or self.chain_deadline_ms is None:
            return own
        return min(own, self.chain_deadline_ms)

    @property
    def open_cut(self) -> OpenCut | None:
        """The cut whose batch may still want cores; None if there is none."""
        return next((cut for cut in reversed(self.cuts.values()) if cut.is_queued), None)

    def waiting_high_ms(self) -> float:
        """The time that jobs of this query waited for cores, at a high quantile."""
        return self.waiting_ms.quantile(WAITING_HIGH)

    def unasked_high_ms(self) -> float:
        """The time for which Spark asks nothing after the first question of a batch was answered
        with a wait, at a high quantile: it may run a batch without data meanwhile."""
        return self.unasked_ms.quantile(UNASKED_HIGH)

    @property
    def gives_way(self) -> bool:
        """Whether the query waits for another one to finish: the moment to decide again."""
        return self.planned is not None and self.planned.gives_way

    def is_overtaken_by(self, other: QueryBook) -> bool:
        """Whether the batch that `other` has just cut takes cores from the one that this query
        waits to cut: a reason to decide again unless it was reckoned with."""
        due_at_ms = None if self.planned is None else self.planned.deadline_at_ms
        return due_at_ms is not None and takes_cores(self.schedule, other.for_others(), due_at_ms)

    def for_others(self) -> OtherQuery:
        """The query as the others of its application reckon with it."""
        if self._for_others is None:
            self._for_others = self._seen_by_others()
        return self._for_others

    # Events. Each changes what others see.

    def asked(self, offer: Offer, now_ms: float) -> None:
        """A new question: the batch before it has left the stream's thread."""
        self.totals.questions += 1
        self.cores, self.schedule = offer.cores, offer.schedule or ""
        self._asked_again(now_ms)
        for cut in self.cuts.values():
            cut.is_queued = False
        self._for_others = None
        self.expire(now_ms)
        self.offered(offer, now_ms)

    def _asked_again(self, now_ms: float) -> None:
        """Note for how long nothing was asked, and a moment that passed meanwhile: the earliest
        that can be kept from here on is now."""
        if self._first_wait_at_ms is not None:
            self.unasked_ms.add(now_ms - self._first_wait_at_ms)
            self._first_wait_at_ms = None
        if self.planned is not None and self.planned.until_ms < now_ms:
            self.totals.moments_unasked += 1
            self.planned = msgspec.structs.replace(self.planned, until_ms=now_ms)

    def offered(self, offer: Offer, now_ms: float) -> None:
        """An offer, told at every look, so that the rate of arrivals is known."""
        self.arrivals.offered(offer, now_ms)

    def decided(self, decision: Decision, offer: Offer, now_ms: float) -> None:
        """Keep a decision for `explain`; a wait that follows a wait replaces it."""
        self.totals.decisions += 1
        is_cut = isinstance(decision, Cut)
        if is_cut and offer.is_first and len(self.unasked_ms):
            self.unasked_ms.add(UNASKED_FADING * self.unasked_high_ms())
        if is_cut and self.planned is not None and not offer.must_cut:
            self.moment_late_ms.add(max(now_ms - self.planned.until_ms, 0.0))
        if not is_cut and self.decisions and not self.decisions[-1].is_cut:
            self.decisions.pop()
        self.decisions.append(
            DecisionLine(
                now_ms,
                is_cut,
                decision.reason,
                offer.rows,
                offer.bytes,
                offer.oldest_age_ms,
                predicted_ms=decision.predicted_ms if isinstance(decision, Cut) else None,
                left_ms=decision.left_ms if isinstance(decision, Cut) else None,
                until_ms=None if isinstance(decision, Cut) else decision.until_ms,
            )
        )
        self.planned = decision if isinstance(decision, Wait) and offer.has_data else None
        if offer.is_first and self.planned is not None:
            self._first_wait_at_ms = now_ms
        self._for_others = None

    def cut_made(
        self,
        decision: Cut,
        batch: Batch,
        now_ms: float,
        ends: Mapping[str, int] | None = None,
    ) -> int:
        """Open a cut for a batch that begins now, and give its number."""
        number, self._next_cut = self._next_cut, self._next_cut + 1
        predictions = {
            name: predicted.ms_p50
            for name, estimator in self.estimators.items()
            if (predicted := estimator.predict(batch.rows, batch.bytes, batch.cores)) is not None
        }
        if "ours" in predictions:
            predictions["ours"] += self.waiting_ms.quantile(0.5)
        self.cuts[number] = OpenCut(
            number, now_ms, batch, decision, self.deadline_ms, predictions, dict(ends or {})
        )
        if len(self.cuts) > CUTS_MAX:
            self.cuts.popitem(last=False)
            self.totals.cuts_expired += 1
        self.totals.cuts += 1
        self.last_cut_at_ms, self.planned = now_ms, None
        if self._first_wait_at_ms is not None:  # no batch without data came between
            self.unasked_ms.add(0.0)
            self._first_wait_at_ms = None
        self.arrivals.cut(batch.rows, batch.bytes, now_ms)
        if self.decisions and self.decisions[-1].is_cut:
            self.decisions[-1] = msgspec.structs.replace(
                self.decisions[-1], cut=number, rows=batch.rows, bytes=batch.bytes
            )
        self._for_others = None
        return number

    def reported(self, report: BatchReport, now_ms: float) -> BatchCost | None:
        """A finished batch as the driver measured it: its cost, if its time is known by now.

        A report that was heard before changes nothing. One of a batch that this book did not cut,
        such as one without data or one that an earlier server cut, counts if it has its time.
        """
        cut = self.cuts.get(report.cut)
        if cut is not None and report.has_data:
            cut.report, cut.is_queued = report, False
            if report.visible_ms is not None and cut.visible_ms is None:
                cut.visible_ms = report.visible_ms
            return self._closed(cut, now_ms)
        if report.visible_ms is None or (report.has_data and report.cut in self._learned):
            return None
        cost = msgspec.convert({**msgspec.structs.asdict(report), "cores": self.cores}, BatchCost)
        self.batch_done(cost, now_ms)
        return cost

    def marked(self, ends: Mapping[str, int], at_ms: float) -> OpenCut | None:
        """A marker with these positions became durable at `at_ms`: the first cut that ends there
        is visible, and its cost is learned once it is reported."""
        for cut in self.cuts.values():
            if cut.visible_ms is None and cut.ends and cut.ends.items() <= ends.items():
                cut.visible_ms = max(at_ms - cut.at_ms, 0.0)
                cut.is_queued = False
                self._for_others = None
                self._closed(cut, at_ms)
                return cut
        return None

    def batch_done(self, cost: BatchCost, now_ms: float) -> None:
        """Learn from a finished batch, whoever cut it."""
        self._learned.append(cost.cut)
        self.costs.append(cost)
        for estimator in self.estimators.values():
            estimator.learn(cost)
        if cost.has_data:
            self.waiting_ms.add(cost.queued_ms)
        if self._cost_at_ms is not None and now_ms > self._cost_at_ms:
            share = min(cost.core_ms / (now_ms - self._cost_at_ms), float(max(cost.cores, 1)))
            self.core_share = SHARE_MEMORY * self.core_share + (1 - SHARE_MEMORY) * share
        self._cost_at_ms = now_ms
        self._for_others = None

    def expire(self, now_ms: float) -> None:
        """Forget cuts of which nothing was heard for ten times their prediction."""
        expired = [number for number, cut in self.cuts.items() if now_ms >= cut.expires_at_ms]
        for number in expired:
            del self.cuts[number]
            self.totals.cuts_expired += 1
            self._for_others = None

    def run_started(self, instance: int | None) -> None:
        """Another run of the query: cuts of the one before it are void."""
        self.instance = instance
        self.arrivals = Arrivals()
        self.cuts.clear()
        self.planned = self.last_cut_at_ms = self._first_wait_at_ms = None
        self._for_others = None

    def terms_changed(self, terms: Terms) -> None:
        """Other terms from the query itself; what an operator has set stays in force."""
        self.terms = terms
        self._for_others = None

    def operator_set(self, deadline_ms: float | None) -> None:
        """A deadline from an operator, which goes before the query's own; None takes it back."""
        self.operator_deadline_ms = deadline_ms
        self._for_others = None

    def _closed(self, cut: OpenCut, now_ms: float) -> BatchCost | None:
        cost = cut.cost()
        if cost is not None:
            del self.cuts[cut.number]
            self._measure(cut, cost)
            self.batch_done(cost, now_ms)
        return cost

    def _measure(self, cut: OpenCut, cost: BatchCost) -> None:
        """Compare a batch with its deadline and with its predictions."""
        latency_ms = cut.batch.oldest_age_ms + cost.visible_ms
        self.latencies_ms.append(latency_ms)
        self.auto.measured(latency_ms)
        self.totals.batches += 1
        self.totals.rows += cost.rows or 0
        self.totals.batch_ms += cost.visible_ms
        if cut.deadline_ms is not None:
            self.is_late = latency_ms > cut.deadline_ms
            self.totals.batches_late += self.is_late
            self.slack_ms.add(cut.deadline_ms - latency_ms)
        for name, predicted_ms in cut.predictions.items():
            self.errors[name].add(abs(predicted_ms - cost.visible_ms) / max(cost.visible_ms, 1.0))
        for index, line in enumerate(self.decisions):
            if line.cut == cut.number:
                self.decisions[index] = msgspec.structs.replace(line, measured_ms=cost.visible_ms)

    def _seen_by_others(self) -> OtherQuery:
        cut, planned = self.open_cut, self.planned
        other = OtherQuery(
            self.query,
            self.terms.importance,
            self.deadline_ms,
            self.ours.usual_ms(),
            self.core_share,
            self.is_late,
        )
        if cut is not None:
            left_ms = cut.decision.left_ms
            other = msgspec.structs.replace(
                other,
                is_open=True,
                open_core_ms=cut.decision.core_ms,
                open_at_ms=cut.at_ms,
                open_predicted_ms=cut.decision.predicted_ms or 0.0,
                open_until_ms=cut.expires_at_ms,
                open_deadline_at_ms=None if left_ms is None else cut.at_ms + left_ms,
                open_task_ms=cut.decision.longest_task_ms,
                zstream_ms=cut.predictions.get("zstream", 0.0),
            )
        if planned is not None:
            other = msgspec.structs.replace(
                other,
                planned_at_ms=planned.until_ms,
                planned_core_ms=planned.core_ms,
                planned_deadline_at_ms=planned.deadline_at_ms,
            )
        return other
