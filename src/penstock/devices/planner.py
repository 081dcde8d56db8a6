"""The planner of one server: the plans of all queries, and the costs of the machines they run on.

Used on one event loop. Planning is part of the answer that cuts a batch; reports are only noted
then, and taken in by `tune`, which its caller runs once the answer is on its way.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Protocol

from penstock.devices.calibration import Calibration, Machine, MachineCosts, machine_of
from penstock.devices.explain import explained_devices
from penstock.devices.plan import pipeline_problem
from penstock.devices.query_planning import QueryPlanning
from penstock.errors import BadCall
from penstock.model.device_plans import BatchPlan, BatchToPlan, PipelineBody, QueryDevices
from penstock.model.requests import BatchReport

_LOG = logging.getLogger("penstock.devices")
QUERIES_MAX = 1_000
MACHINES_MAX = 256
REPORTS_MAX = 1_000
SAVE_EVERY = 1_000
"""Measured parts after which a calibration is written anew."""
UNNAMED = Machine("a machine that was not named", 1)


class Calibrations(Protocol):
    """A place where calibrations are kept."""

    def load(self, machine: Machine) -> Calibration | None:
        """The calibration of a kind of machine, or None; BadCall if there is one of no use."""
        ...

    def save(self, calibration: Calibration) -> None:
        """Keep a calibration in place of the one before it."""
        ...


class NoCalibrations:
    """Calibrations of a server that keeps none."""

    def load(self, machine: Machine) -> Calibration | None:
        return None

    def save(self, calibration: Calibration) -> None:
        return None


class _KeptMachine:
    """The costs of a kind of machine, and a sentence on where they come from."""

    def __init__(self, costs: MachineCosts, origin: str) -> None:
        self.costs = costs
        self.origin = origin
        self.saved_changes = 0


class DevicePlanner:
    """Plans of all queries, bounded: at the bound the query not planned for longest is forgotten,
    and begins with the costs of its machines again."""

    def __init__(self, calibrations: Calibrations) -> None:
        self._calibrations = calibrations
        self._queries: OrderedDict[str, QueryPlanning] = OrderedDict()
        self._machines: OrderedDict[Machine, _KeptMachine] = OrderedDict()
        self._heard: dict[str, deque[BatchReport]] = {}

    def problem(self, pipeline: PipelineBody) -> str | None:
        """A sentence that says why a pipeline cannot be run as its query wants."""
        return pipeline_problem(pipeline)

    def plan(self, query: str, pipeline: PipelineBody, batch: BatchToPlan) -> BatchPlan:
        """The plan of a batch that was just cut."""
        planning = self._planning(query, pipeline)
        sentence = planning.run_asks(batch.run)
        if sentence is not None:
            _LOG.warning("query %s: %s", query, sentence)
        return planning.plan(pipeline, batch)

    def heard(self, query: str, pipeline: PipelineBody, reports: Sequence[BatchReport]) -> None:
        """Note the reports of a question; `tune` takes them in."""
        planned = [report for report in reports if report.plan is not None]
        if planned:
            self._planning(query, pipeline)
            self._heard.setdefault(query, deque(maxlen=REPORTS_MAX)).extend(planned)

    def tune(self, query: str) -> None:
        """Take in the reports that were noted: costs, inflection point, probes, fallbacks."""
        planning, reports = self._queries.get(query), self._heard.pop(query, ())
        if planning is None:
            return
        for report in reports:
            for sentence in planning.learn(report):
                _LOG.warning("query %s: %s", query, sentence)
        for kept in self._machines_of(planning.pipeline):
            if kept.costs.changes - kept.saved_changes >= SAVE_EVERY:
                self._save(kept)

    def explain(self, query: str, now_ms: float) -> QueryDevices | None:
        """The planning of a query, explained; None for one whose batches are not planned."""
        self.tune(query)
        planning = self._queries.get(query)
        if planning is None:
            return None
        origins = [kept.origin for kept in self._machines_of(planning.pipeline)]
        return explained_devices(planning, " ".join(dict.fromkeys(origins)), now_ms)

    def close(self) -> None:
        """Keep what was learned of every machine."""
        for kept in self._machines.values():
            if kept.costs.changes > kept.saved_changes:
                self._save(kept)

    def _planning(self, query: str, pipeline: PipelineBody) -> QueryPlanning:
        planning = self._queries.get(query)
        if planning is None or not planning.is_of(pipeline):
            costs = [kept.costs for kept in self._machines_of(pipeline)]
            planning = self._queries[query] = QueryPlanning(pipeline, costs)
            if len(self._queries) > QUERIES_MAX:
                forgotten, _ = self._queries.popitem(last=False)
                self._heard.pop(forgotten, None)
        elif not planning.is_on(pipeline):
            planning.moved_to(pipeline, [kept.costs for kept in self._machines_of(pipeline)])
        self._queries.move_to_end(query)
        return planning

    def _save(self, kept: _KeptMachine) -> None:
        kept.saved_changes = kept.costs.changes
        if kept.costs.machine != UNNAMED:
            self._calibrations.save(kept.costs.calibration())

    def _machines_of(self, pipeline: PipelineBody) -> list[_KeptMachine]:
        machines = dict.fromkeys(machine_of(body) for body in pipeline.machines)
        return [self._machine(machine) for machine in machines or (UNNAMED,)]

    def _machine(self, machine: Machine) -> _KeptMachine:
        kept = self._machines.get(machine)
        if kept is None:
            kept = self._machines[machine] = self._loaded(machine)
            if len(self._machines) > MACHINES_MAX:
                self._machines.popitem(last=False)
        return kept

    def _loaded(self, machine: Machine) -> _KeptMachine:
        try:
            calibration = self._calibrations.load(machine)
        except BadCall as refusal:
            _LOG.warning("%s", refusal.message)
            return _KeptMachine(MachineCosts(machine), refusal.message)
        if calibration is None:
            return _KeptMachine(
                MachineCosts(machine),
                f"{machine} was not calibrated before: costs begin with those that Penstock ships.",
            )
        batches = max((cost.values for cost in calibration.costs.values()), default=0)
        return _KeptMachine(
            MachineCosts(machine, calibration),
            f"{machine} was calibrated by {batches} batches before this server started.",
        )
