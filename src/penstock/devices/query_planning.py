"""The planning of one query: its costs, its inflection point, its probes and its last plans.

Pure: batches are planned when they are cut, reports are taken in when there is time for it.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from penstock.devices.calibration import Machine, MachineCosts, machine_of
from penstock.devices.costs import QueryCosts
from penstock.devices.fallbacks import Fallbacks
from penstock.devices.gpu_path import GpuPath
from penstock.devices.plan import (
    PlannedWay,
    Planning,
    Way,
    cheapest_way,
    forced_plan,
    our_plan,
    policy_plan,
)
from penstock.devices.tuning import SURPRISE, PaperTuning, Probing, is_bearable
from penstock.devices.worker_path import WorkerPath
from penstock.model.device_plans import (
    OUR_POLICIES,
    BatchPlan,
    BatchToPlan,
    Device,
    PipelineBody,
    PlanReport,
)
from penstock.model.requests import BatchReport

PLANS_MAX = 64
STALE_BATCHES = 50
"""A way that was taken within so many batches is known well enough not to be probed."""
TRIES_MIN = 3
"""A way that was taken less often counts as untried: one value may be a disturbed one."""
WORKER_START_MS = 2_000.0
"""The time by which a batch on the columnar path may take longer than it costs otherwise: workers
have to start and import what they need, where none had anything to do lately."""


@dataclass
class KeptPlan:
    """A plan while its batch runs, and after it. `inflection_bytes` is the point that it was made
    by, `way` the one that `ours` has taken; `had_workers`: workers of its run were there."""

    batch: BatchToPlan
    pipeline: PipelineBody
    plan: BatchPlan
    inflection_bytes: float
    report: PlanReport | None = None
    way: Way | None = None
    had_workers: bool = False


class QueryPlanning:
    """Plans batches of one query, over all of its runs. Other operations begin with the costs of
    the machine again."""

    def __init__(self, pipeline: PipelineBody, machines: Sequence[MachineCosts]) -> None:
        self.pipeline = pipeline
        self.costs = QueryCosts(pipeline, machines)
        self.tuning = PaperTuning()
        self.probing = Probing()
        self.fallbacks = Fallbacks()
        self.plans: OrderedDict[int, KeptPlan] = OrderedDict()
        self._taken_at: dict[Way, int] = {}
        self._tries: Counter[Way] = Counter()
        # Ways whose last probe taught nothing, because workers had to start for it.
        self._unlearned: set[Way] = set()
        self._workers = WorkerPath()
        self._gpu = GpuPath()

    def is_of(self, pipeline: PipelineBody) -> bool:
        """Whether what was learned is of the operations of a pipeline."""
        return _learned_for(self.pipeline) == _learned_for(pipeline)

    def is_on(self, pipeline: PipelineBody) -> bool:
        """Whether a pipeline runs on the same kinds of machines, however many."""
        return _kinds(self.pipeline) == _kinds(pipeline)

    def moved_to(self, pipeline: PipelineBody, machines: Sequence[MachineCosts]) -> None:
        """Go on with other kinds of machines: executors come and go, and one that is new has no GPU
        until a worker tells of it. All that was learned and tried stays."""
        self.pipeline = pipeline
        self.costs.moved_to(machines)

    def run_asks(self, run: str) -> str | None:
        """A run of the query asks; a sentence if the one before it has failed in workers."""
        has_failed = self._workers.run_asks(run, self.probing.batches)
        return self.left_out() if has_failed else None

    def left_out(self) -> str | None:
        """A sentence on the columnar path while it is left out."""
        if self.pipeline.devices != "auto":
            return None
        return self._workers.sentence(self.probing.batches)

    def gpu_left_out(self) -> str | None:
        """A sentence on the GPU while it is left out. Policies that are there for comparison keep
        it, as does a query that insists on it."""
        if self.pipeline.devices != "auto" or self.pipeline.policy not in OUR_POLICIES:
            return None
        return self._gpu.absence(self.probing.batches)

    def plan(self, pipeline: PipelineBody, batch: BatchToPlan) -> BatchPlan:
        """The plan of a batch that was just cut."""
        self.pipeline = pipeline
        usable = self._workers.open_pipeline(pipeline, self.probing.batches)
        planning = Planning.of(usable, batch, self.costs, self.gpu_left_out())
        self.probing.batch_planned()
        kept = self._planned(planning, batch)
        kept.had_workers = self._workers.has_workers(batch.at_ms)
        is_columnar = kept.plan.path == "columnar"
        self._workers.planned(batch.cut, batch.at_ms, is_columnar=is_columnar)
        self.plans[batch.cut] = kept
        if len(self.plans) > PLANS_MAX:
            self.plans.popitem(last=False)
        return kept.plan

    def learn(self, report: BatchReport) -> list[str]:
        """Take in a finished batch; the sentences about it that are to be said now. One that was
        heard before changes nothing."""
        kept, ran = self.plans.get(report.cut), report.plan
        if ran is None or (kept is not None and kept.report is not None):
            return []
        is_cold = self._is_cold(kept, ran)
        if not is_cold:
            self.costs.learn(ran)
        if kept is not None:
            kept.report = ran
            if kept.plan.path == "columnar":
                self._workers.reported(report.cut, is_columnar=ran.path == "columnar")
            self._tune(kept, report, ran)
            self._probe_done(kept, ran, is_cold=is_cold)
            if not is_cold and kept.way is not None:
                self._unlearned.discard(kept.way)
        news = self.fallbacks.heard(ran)
        if kept is not None and self._gpu.reported(kept.plan, ran, self.probing.batches):
            absence = self.gpu_left_out()
            news.extend([] if absence is None else [absence])
        return news

    def _is_cold(self, kept: KeptPlan | None, ran: PlanReport) -> bool:
        """Whether a batch had to start workers that a later one will find: none were there when it
        was planned, or it is a probe. Where they are started all the time, that is what they cost.
        """
        if not ran.started_workers:
            return False
        return kept is None or kept.plan.is_probe or not kept.had_workers

    def _planned(self, planning: Planning, batch: BatchToPlan) -> KeptPlan:
        pipeline, point = planning.pipeline, self.tuning.inflection_bytes
        if pipeline.devices != "auto":
            return KeptPlan(batch, pipeline, forced_plan(planning), point)
        if pipeline.policy not in OUR_POLICIES:
            is_probe = pipeline.policy == "lmstream" and self._paper_may_probe(planning, batch)
            if is_probe:
                point = self.tuning.probed_bytes()
                self.probing.probed()
            plan = policy_plan(planning, point)
            return KeptPlan(batch, pipeline, _probe(plan) if is_probe else plan, point)
        ways, may_use_workers = planning.ways(), self._may_use_workers(batch)
        best = cheapest_way(ways, may_use_workers=may_use_workers)
        probed = self._probed_way(ways, best, batch)
        taken = best if probed is None else probed
        self._taken_at[taken.way] = self.probing.batches
        self._tries[taken.way] += 1
        if probed is not None:
            self.probing.probed()
        plan = our_plan(planning, ways, probed, may_use_workers=may_use_workers)
        return KeptPlan(batch, pipeline, plan, point, way=taken.way)

    def _paper_may_probe(self, planning: Planning, batch: BatchToPlan) -> bool:
        """Whether a batch can bear another inflection point: at worst, all on the dearer device."""
        if not self.probing.is_due() or planning.absence is not None:
            return False
        ways = [planning.on_one_device(device) for device in get_args(Device)]
        times = [planned.time.wall for planned in ways]
        margin_ms = max(planned.margin_ms for planned in ways)
        return is_bearable(max(times) - min(times), batch.spare_ms, margin_ms)

    def _may_use_workers(self, batch: BatchToPlan) -> bool:
        """Whether a batch finds workers, or can bear their start."""
        return self._workers.has_workers(batch.at_ms) or is_bearable(
            WORKER_START_MS, batch.spare_ms
        )

    def _probed_way(
        self, ways: dict[Way, PlannedWay], best: PlannedWay, batch: BatchToPlan
    ) -> PlannedWay | None:
        """The way that was taken longest ago, if it is time to try it and the batch can bear it."""
        has_untried = any(self._tries[way] < TRIES_MIN or way in self._unlearned for way in ways)
        if not self.probing.is_due(has_untried=has_untried):
            return None
        since = self.probing.batches - STALE_BATCHES
        stale = [
            planned
            for planned in ways.values()
            if planned.way != best.way
            and self._taken_at.get(planned.way, since) <= since
            and self._is_probe_bearable(planned, best, batch)
        ]
        return min(stale, key=self._turn, default=None)

    def _is_probe_bearable(self, planned: PlannedWay, best: PlannedWay, batch: BatchToPlan) -> bool:
        """Whether a batch can bear another way than the best, the start of workers included."""
        start_ms = 0.0
        if planned.path == "columnar" and not self._workers.has_workers(batch.at_ms):
            start_ms = WORKER_START_MS
        longer_ms = max(planned.time.wall - best.time.wall, 0.0) + start_ms
        return is_bearable(longer_ms, batch.spare_ms, planned.margin_ms)

    def _turn(self, planned: PlannedWay) -> tuple[bool, int, int, float]:
        """A key to sort ways by. One whose probe taught nothing comes first, as its workers may be
        there still; then those that were hardly tried, then those not taken for longest; of equals
        the one that is thought to take least."""
        way = planned.way
        tries = min(self._tries[way], TRIES_MIN)
        return way not in self._unlearned, tries, self._taken_at.get(way, -1), planned.reckoned_ms

    def _tune(self, kept: KeptPlan, report: BatchReport, ran: PlanReport) -> None:
        batch = kept.batch
        processing_ms = report.visible_ms
        if processing_ms is None:
            processing_ms = report.planning_ms + report.core_ms / max(batch.cores, 1)
        self.tuning.batch_done(
            kept.inflection_bytes,
            sum(batch.bytes_by_task),
            processing_ms,
            batch.oldest_age_ms + processing_ms,
            batch.slide_ms,
        )

    def _probe_done(self, kept: KeptPlan, ran: PlanReport, *, is_cold: bool) -> None:
        """Note what a probe has taught: nothing where it had to start workers. Where the next one
        of its way finds none either, it teaches without their start."""
        if kept.plan.policy not in OUR_POLICIES or not kept.plan.is_probe or kept.way is None:
            return
        if is_cold and kept.way not in self._unlearned:
            self._unlearned.add(kept.way)
            return
        if is_cold:
            self._unlearned.discard(kept.way)
            ran = self._without_start(ran)
            self.costs.learn(ran)
        self.probing.measured(is_surprise=_is_surprise(kept.plan, ran))

    def _without_start(self, ran: PlanReport) -> PlanReport:
        """A report without the time that its workers are thought to have taken to start: the way to
        them takes no less than was known."""
        known_ms = self.costs.worker().at(ran.bytes / ran.tasks) * ran.tasks if ran.tasks else 0.0
        rest_ms = max(ran.worker_ms - WORKER_START_MS * ran.started_workers, known_ms)
        start_ms = max(ran.worker_ms - rest_ms, 0.0)
        return msgspec.structs.replace(
            ran, stage_ms=ran.stage_ms - start_ms, worker_ms=ran.worker_ms - start_ms
        )


def _is_surprise(plan: BatchPlan, ran: PlanReport) -> bool:
    """Whether a probe took another time than expected: as a whole, or one of its steps. What a
    worker takes hides the operations, so that these are looked at by themselves."""
    pairs = [(plan.expected_ms or 0.0, ran.stage_ms)]
    for step in ran.operations:
        planned = plan.operations[step.first : step.first + step.count]
        pairs.append((sum(each.expected_ms or 0.0 for each in planned), step.ms))
    return any(not expected / SURPRISE < ms < expected * SURPRISE for expected, ms in pairs)


def _learned_for(pipeline: PipelineBody) -> tuple[object, ...]:
    # Texts are for people, and may have the time of a batch in them.
    return tuple(operation.kind for operation in pipeline.operations), pipeline.windows


def _kinds(pipeline: PipelineBody) -> frozenset[Machine]:
    return frozenset(machine_of(machine) for machine in pipeline.machines)


def _probe(plan: BatchPlan) -> BatchPlan:
    return msgspec.structs.replace(plan, is_probe=True)
