"""The book of one query: its terms, its open cuts, what its batches cost, and how it fared.

Pure: time is passed in, as milliseconds of one monotonic clock; only its methods change it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

import msgspec

from penstock.admission.arrivals import Arrivals
from penstock.admission.decision import Cut, Decision, Wait
from penstock.admission.estimate.cost import BatchCost, BatchReport, Estimator
from penstock.admission.estimate.ours import OurEstimator
from penstock.admission.estimate.papers import LmStreamEstimator, ZStreamEstimator
from penstock.admission.estimate.quantile import RecentValues
from penstock.admission.offer import Offer
from penstock.admission.terms import Terms

CUTS_MAX = 8
DECISIONS_MAX = 64
HISTORY_MAX = 256
PREDICTIONS_UNTIL_EXPIRY = 10.0
"""An open cut counts no longer once this many times its prediction has passed."""
EXPIRY_MS_MIN = 10_000.0
WAITING_HIGH = 0.9


class Batch(msgspec.Struct, frozen=True):
    """The contents of a batch that was cut: sizes as far as known, the age of its oldest row."""

    rows: int | None
    bytes: int | None
    oldest_age_ms: float
    cores: int = 1
    has_data: bool = True


@dataclass
class OpenCut:
    """A cut whose batch is not known to be visible, or whose cost is not told yet.

    `is_queued`: its tasks may still want cores. `ends` are the positions by stream that its marker
    will have.
    """

    number: int
    at_ms: float
    batch: Batch
    decision: Cut
    deadline_ms: float | None
    predictions: dict[str, float]
    ends: dict[str, int] = field(default_factory=dict)
    is_queued: bool = True
    report: BatchReport | None = None
    visible_ms: float | None = None

    def expires_at_ms(self) -> float:
        predicted_ms = self.decision.predicted_ms or 0.0
        return self.at_ms + max(PREDICTIONS_UNTIL_EXPIRY * predicted_ms, EXPIRY_MS_MIN)


class DecisionLine(msgspec.Struct, frozen=True):
    """A decision as it is kept for `explain`; measurements are filled in when they come."""

    at_ms: float
    is_cut: bool
    reason: str
    rows: int | None
    bytes: int | None
    oldest_age_ms: float
    cut: int | None = None
    predicted_ms: float | None = None
    left_ms: float | None = None
    measured_ms: float | None = None
    until_ms: float | None = None


class Totals(msgspec.Struct):
    """Counts of a query since the server started."""

    batches: int = 0
    batches_late: int = 0
    rows: int = 0
    cuts: int = 0
    cuts_expired: int = 0
    questions: int = 0


@dataclass
class QueryBook:
    """All that is known of one query. `deadline_ms` is the one in force: that of an operator, of
    the terms, of its share in a chain, or the one that `auto` found."""

    query: str
    terms: Terms
    name: str | None = None
    application: str = ""
    instance: int | None = None

    def __post_init__(self) -> None:
        self.ours = OurEstimator()
        self.zstream = ZStreamEstimator()
        self.lmstream = LmStreamEstimator()
        self.arrivals = Arrivals()
        self.cuts: OrderedDict[int, OpenCut] = OrderedDict()
        self.decisions: deque[DecisionLine] = deque(maxlen=DECISIONS_MAX)
        self.costs: deque[BatchCost] = deque(maxlen=HISTORY_MAX)
        self.latencies_ms: deque[float] = deque(maxlen=HISTORY_MAX)
        self.slack_ms = RecentValues()
        self.waiting_ms = RecentValues()
        self.errors = {name: RecentValues() for name in ("ours", "zstream", "lmstream")}
        self.totals = Totals()
        self.last_cut_at_ms: float | None = None
        self.planned: Wait | None = None
        self.chain_deadline_ms: float | None = None
        self.operator_deadline_ms: float | None = None
        self.auto_deadline_ms: float | None = None
        self.core_share = 0.0
        self.is_late = False
        self._next_cut = 1
        self._shared_at_ms: float | None = None

    @property
    def estimators(self) -> dict[str, Estimator]:
        """The estimators by name; all learn from the same batches."""
        return {"ours": self.ours, "zstream": self.zstream, "lmstream": self.lmstream}

    @property
    def deadline_ms(self) -> float | None:
        """The deadline in force."""
        own = self.operator_deadline_ms or self.terms.deadline_ms or self.auto_deadline_ms
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

    # Events

    def asked(self, offer: Offer, now_ms: float) -> None:
        """A new question: the batch before it has left the stream's thread."""
        self.totals.questions += 1
        for cut in self.cuts.values():
            cut.is_queued = False
        self.expire(now_ms)
        self.arrivals.waiting(offer.rows, now_ms)

    def decided(self, decision: Decision, offer: Offer, now_ms: float) -> None:
        """Keep a decision for `explain`; a wait that follows a wait replaces it."""
        line = DecisionLine(
            now_ms, isinstance(decision, Cut), decision.reason, offer.rows, offer.bytes,
            offer.oldest_age_ms,
        )  # fmt: skip
        if isinstance(decision, Wait):
            self.planned = decision if offer.has_data else None
            line = msgspec.structs.replace(line, until_ms=decision.until_ms)
            if self.decisions and not self.decisions[-1].is_cut:
                self.decisions.pop()
        else:
            line = msgspec.structs.replace(
                line, predicted_ms=decision.predicted_ms, left_ms=decision.left_ms
            )
        self.decisions.append(line)

    def cut_made(
        self, decision: Cut, batch: Batch, now_ms: float, ends: dict[str, int] | None = None
    ) -> int:
        """Open a cut for a batch that begins now, and give its number."""
        number, self._next_cut = self._next_cut, self._next_cut + 1
        predictions = {
            name: predicted.ms_p50
            for name, estimator in self.estimators.items()
            if (predicted := estimator.predict(batch.rows, batch.bytes, batch.cores)) is not None
        }
        if decision.predicted_ms is not None:
            predictions["ours"] = decision.predicted_ms
        self.cuts[number] = OpenCut(
            number, now_ms, batch, decision, self.deadline_ms, predictions, dict(ends or {})
        )
        while len(self.cuts) > CUTS_MAX:
            self.cuts.popitem(last=False)
            self.totals.cuts_expired += 1
        self.totals.cuts += 1
        self.last_cut_at_ms, self.planned = now_ms, None
        self.arrivals.taken(batch.rows)
        if self.decisions and self.decisions[-1].is_cut:
            self.decisions[-1] = msgspec.structs.replace(
                self.decisions[-1], cut=number, rows=batch.rows, bytes=batch.bytes
            )
        return number

    def reported(self, report: BatchReport, now_ms: float) -> BatchCost | None:
        """A finished batch as the driver measured it: its cost, once its time is known too."""
        cut = self.cuts.get(report.cut)
        if cut is None:
            return None
        cut.report, cut.is_queued = report, False
        if report.visible_ms is not None and cut.visible_ms is None:
            cut.visible_ms = report.visible_ms
        return self._closed(cut, now_ms)

    def marked(self, ends: dict[str, int], at_ms: float) -> BatchCost | None:
        """A marker with these positions was appended at `at_ms`: the first cut that ends there is
        visible."""
        for cut in self.cuts.values():
            if cut.visible_ms is None and cut.ends and cut.ends.items() <= ends.items():
                cut.visible_ms = max(at_ms - cut.at_ms, 0.0)
                cut.is_queued = False
                return self._closed(cut, at_ms)
        return None

    def batch_done(self, cost: BatchCost, now_ms: float) -> None:
        """Learn from a finished batch, whether this book cut it or an earlier server did."""
        self.costs.append(cost)
        for estimator in self.estimators.values():
            estimator.learn(cost)
        self.waiting_ms.add(cost.queued_ms)
        self._share_cores(cost, now_ms)

    def expire(self, now_ms: float) -> None:
        """Forget cuts of which nothing was heard for ten times their prediction."""
        for number in [n for n, cut in self.cuts.items() if now_ms >= cut.expires_at_ms()]:
            del self.cuts[number]
            self.totals.cuts_expired += 1

    def run_started(self, instance: int | None) -> None:
        """Another run of the query: cuts of the one before it are void."""
        self.instance = instance
        self.cuts.clear()
        self.planned = None

    def terms_changed(self, terms: Terms) -> None:
        """Other terms from the query itself; what an operator has set stays in force."""
        self.terms = terms

    def _closed(self, cut: OpenCut, now_ms: float) -> BatchCost | None:
        """Learn from a cut once both its time and its cost are known."""
        if cut.report is None or cut.visible_ms is None:
            return None
        del self.cuts[cut.number]
        report, batch = cut.report, cut.batch
        cost = BatchCost(
            cut.number, cut.visible_ms,
            batch.rows if report.rows is None else report.rows,
            batch.bytes if batch.bytes is not None else report.bytes,
            report.has_data, min(report.queued_ms, cut.visible_ms), report.planning_ms,
            report.core_ms, report.longest_task_ms, report.tasks, batch.cores,
        )  # fmt: skip
        self._measure(cut, cost)
        self.batch_done(cost, now_ms)
        return cost

    def _measure(self, cut: OpenCut, cost: BatchCost) -> None:
        """Compare a batch with its deadline and with its predictions."""
        if not cost.has_data:
            return
        latency_ms = cut.batch.oldest_age_ms + cost.visible_ms
        self.latencies_ms.append(latency_ms)
        self.totals.batches += 1
        self.totals.rows += cost.rows or 0
        if cut.deadline_ms is not None:
            self.is_late = latency_ms > cut.deadline_ms
            self.totals.batches_late += self.is_late
            self.slack_ms.add(cut.deadline_ms - latency_ms)
        for name, predicted_ms in cut.predictions.items():
            self.errors[name].add(abs(predicted_ms - cost.visible_ms) / max(cost.visible_ms, 1.0))
        for index, line in enumerate(self.decisions):
            if line.cut == cut.number:
                self.decisions[index] = msgspec.structs.replace(line, measured_ms=cost.visible_ms)

    def _share_cores(self, cost: BatchCost, now_ms: float) -> None:
        """Keep the number of cores that this query has busy on average, over some ten batches."""
        if self._shared_at_ms is not None and now_ms > self._shared_at_ms:
            share = cost.core_ms / (now_ms - self._shared_at_ms)
            self.core_share += 0.1 * (min(share, float(cost.cores)) - self.core_share)
        self._shared_at_ms = now_ms
