"""Runs of the deadlines suite: rates that hold, modes in turns, spare traffic, and three shocks.

A Spark process stays for all runs of the modes that share its scheduler.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment.joint_rig import JointBench, JointRig, JointSeat
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.record import Kind, Measured, in_file
from penstock_lab.experiment.search import searching
from penstock_lab.experiment.together import QueryRun, Together, query_runs, summed_up
from penstock_lab.experiment.turns import Retries, Step, Steps, Tell, rotated, with_retry
from penstock_lab.experiment.visible_rows import Recovery, Span, recovery
from penstock_lab.suites.deadlines_cells import (
    BACKLOG_QUERY,
    BESIDE,
    BESIDE_S,
    BURST_S,
    BURST_SHARE,
    CORES,
    HIGH_SHARE,
    MODES,
    OURS,
    PROCESSES,
    SPARE_SHARE,
    TRAFFIC,
    Cell,
    Plan,
    Search,
)

PROGRESS_KEPT = 5_000
"""How many batches of a query Spark is to remember: more than any run has."""
ALL = "all"
SIMULATED_BATCHES_MIN = 8
"""With fewer batches of a query no model can be fitted to them."""


class Record(Measured[Cell], frozen=True):
    """A run of all queries as one, and each of them."""

    queries: dict[str, QueryRun] = msgspec.field(default_factory=dict)
    recoveries: dict[str, Recovery] = msgspec.field(default_factory=dict)
    """By query, how it came back after a burst or a backlog."""
    started_ms: float = 0.0
    """When the queries were started, since the epoch."""


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    queries = {}
    for name, query_run in record.queries.items():
        built = msgspec.to_builtins(query_run)
        columns = {
            field: [getattr(span, field) for span in query_run.spans]
            for field in Span.__struct_fields__
        }
        queries[name] = {
            **built,
            "run": in_file(query_run.run),
            "spans": columns,
            "measured": len(query_run.measured),
        }
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        "queries": queries,
        "recoveries": msgspec.to_builtins(record.recoveries),
        "measured_run": for_simulation(record),
    }


def for_simulation(record: Record) -> dict[str, Any] | None:
    """The run as `penstock simulate --measured` takes it; None where it has too few batches."""
    mode = MODES[record.system]
    bound_ms = record.cell.deadline_s * 1000
    each = []
    for name, query_run in record.queries.items():
        batches = [span for span in query_run.measured if not query_run.run.verdict.reasons]
        if sum(span.rows > 0 for span in batches) < SIMULATED_BATCHES_MIN:
            return None
        each.append(
            {
                "name": name,
                "policy": mode.policy or ("fixed" if mode.is_timed else "asap"),
                "deadline_ms": bound_ms if mode.policy else None,
                "interval_ms": bound_ms
                if mode.is_timed and mode.policy in (None, "fixed")
                else None,
                "batches": [simulated_batch(span) for span in batches],
            }
        )
    if record.kind != "compared":
        return None
    order = "fifo" if mode.process == "tuned" else mode.process
    title = f"{record.cell.words}: {mode.name}, repeat {record.repeat + 1}"
    return {"cores": CORES, "order": order, "queries": each, "title": title}


def simulated_batch(span: Span) -> dict[str, float]:
    return {
        "cut_at_ms": span.cut_ms,
        "visible_at_ms": span.visible_ms,
        "rows": span.rows,
        "planning_ms": span.planning_ms,
        "core_ms": span.tasks_ms,
        "queued_ms": span.queued_ms,
    }


Open: TypeAlias = Callable[[Plan, str, Path], contextlib.AbstractContextManager[JointBench]]


def rig(plan: Plan, process: str, folder: Path) -> JointRig:
    system, conf = PROCESSES[process]
    kept = {"spark.sql.streaming.numRecentProgressUpdates": str(PROGRESS_KEPT)}
    return JointRig(system, folder, cores=plan.cores, conf={**conf, **kept}, tells_commits=True)


class Seats:
    """Spark processes, each started when it is first needed and kept until all is done."""

    def __init__(
        self, plan: Plan, folder: Path, opening: Open, closing: contextlib.ExitStack
    ) -> None:
        self._plan = plan
        self._folder = folder
        self._opening = opening
        self._closing = closing
        self._seats: dict[str, JointSeat] = {}

    def of(self, mode: str) -> JointSeat:
        process = MODES[mode].process
        if process not in self._seats:
            opened = self._opening(self._plan, process, self._folder / process)
            self._seats[process] = JointSeat.taken(self._closing, opened)
        return self._seats[process]


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    with contextlib.ExitStack() as closing:
        seats = Seats(plan, folder, opening, closing)
        held = yield from _searched(plan, seats)
        rate = plan.rate or rate_of(held, plan)
        retries = Retries(plan.again_max)
        yield from _compare(plan, seats, rate, retries)
        own = held.get(OURS) or round(rate / HIGH_SHARE)
        if OURS in plan.modes:
            yield from _with_spare(plan, seats, round(own * SPARE_SHARE), retries)
        shocks = {"burst": _burst, "backlog": _backlog, "beside": _beside}
        for shock, mode in plan.shock_runs:
            yield shocks[shock](plan, seats, mode, round(rate / HIGH_SHARE * BURST_SHARE))


def rate_of(held: dict[str, int], plan: Plan) -> int:
    """High traffic: a share of what the better baseline sustains.

    Where none held any rate that was tried, it is a share of what half the first would be.
    """
    best = max((rate for mode, rate in held.items() if mode != OURS), default=0)
    assert plan.search is not None
    return max(round((best or held.get(OURS) or plan.search.rate_first // 2) * HIGH_SHARE), 1)


def _searched(plan: Plan, seats: Seats) -> Generator[Step[Record], Record, dict[str, int]]:
    """The highest rate that held, by mode; each search begins where the one before ended."""
    held: dict[str, int] = {}
    for mode in plan.searched:
        assert plan.search is not None
        first = max(held.values(), default=0) or plan.search.rate_first
        search = Search(first, plan.search.rate_max, plan.search.tries_max)
        tried = yield from searching(search, partial(_at, plan, seats, mode))
        held[mode] = max((at.rate for at in tried if at.is_sustained), default=0)
    return held


def _at(plan: Plan, seats: Seats, mode: str, rate: int, number: int) -> Step[Record]:
    cell = Cell(ALL, plan.longest_s, "high")
    words = f"{mode} with a deadline of {plan.longest_s:g} s: does it hold {rate:,}/s?"
    return Step(words, partial(measured, plan, seats, cell, mode, number, rate, "sustain"))


def _compare(plan: Plan, seats: Seats, rate: int, retries: Retries) -> Steps[Record]:
    for repeat in range(plan.repeats):
        for traffic in plan.traffics:
            here = max(round(rate * TRAFFIC[traffic][1] / HIGH_SHARE), 1)
            for mode, deadline_s in rotated(tuple(plan.compared_runs), repeat * 3):
                cell = Cell(ALL, deadline_s, traffic)
                words = f"{cell.words}, {here:,}/s: {mode}, {repeat + 1} of {plan.repeats}"
                measure = partial(measured, plan, seats, cell, mode, repeat, here, "compared")
                yield from with_retry(words, measure, measure, retries)


def _with_spare(plan: Plan, seats: Seats, rate: int, retries: Retries) -> Steps[Record]:
    for repeat in range(plan.spare_repeats):
        for deadline_s in plan.deadlines_s:
            cell = Cell(ALL, deadline_s, "high")
            words = f"{cell.words}, {rate:,}/s, with spare: {OURS}, {repeat + 1}"
            measure = partial(measured, plan, seats, cell, OURS, repeat, rate, "spare")
            yield from with_retry(words, measure, measure, retries)


def measured(
    plan: Plan, seats: Seats, cell: Cell, mode: str, repeat: int, rate: int, kind: Kind
) -> Record:
    seat = seats.of(mode)
    warm_up_s = plan.warm_up_s if seat.is_warm else plan.first_warm_up_s
    measure_s = plan.searched_s if kind == "sustain" else None
    conditions = plan.conditions(mode, cell.deadline_s, cell.traffic, rate, warm_up_s, measure_s)
    return _recorded(plan, seat, cell, mode, repeat, conditions, kind)


def _recorded(
    plan: Plan,
    seat: JointSeat,
    cell: Cell,
    mode: str,
    repeat: int,
    conditions: Together,
    kind: Kind,
) -> Record:
    noted = seat.run(conditions)
    bounds = tuple(dict.fromkeys((*plan.deadlines_s, cell.deadline_s, *BESIDE_S)))
    queries = query_runs(conditions, mode, repeat, noted, bounds)
    run = summed_up(ALL, mode, repeat, conditions.rate, queries)
    recoveries: dict[str, Recovery] = {}
    if noted.report is not None:
        for name, part in noted.parts.items():
            back = back_under(
                conditions, part.rows, noted.report.started_ms, noted.started_ms, cell.deadline_s
            )
            if back is not None:
                recoveries[name] = back
    return Record(cell, run, kind, queries, recoveries, noted.started_ms)


def back_under(
    conditions: Together,
    rows: list[Sighting],
    sent_from_ms: float,
    started_ms: float,
    deadline_s: float,
) -> Recovery | None:
    """The way of a query back after its burst, or after the backlog it started with."""
    sent_from_us = round(sent_from_ms * 1000)
    if conditions.traffic == "burst":
        began_us = sent_from_us + round(conditions.burst_from_s * 1e6)
        warm_us = sent_from_us + round(conditions.warm_up_s * 1e6)
        over_us = began_us + round(conditions.burst_s * 1e6)
        return recovery(rows, warm_us, began_us, over_us, deadline_s)
    if conditions.backlog_rows:
        # Rows of the backlog had waited before anybody could take them.
        mine = [
            Sighting(batch.seen_us, batch.sent_us[batch.sent_us >= sent_from_us]) for batch in rows
        ]
        started_us = round(started_ms * 1000)
        return recovery(mine, started_us, started_us, started_us, deadline_s)
    return None


def _burst(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
    """Ten times the rate for five seconds, in the middle of a calm run."""

    def measure() -> Record:
        seat = seats.of(mode)
        warm_up_s = plan.warm_up_s if seat.is_warm else plan.first_warm_up_s
        calm_s = plan.measured_s(plan.longest_s)
        conditions = msgspec.structs.replace(
            plan.conditions(mode, plan.longest_s, "high", rate, warm_up_s),
            traffic="burst",
            burst_from_s=warm_up_s + calm_s,
            burst_s=BURST_S,
            # The next burst would come where the run ends, or later.
            measure_s=calm_s + BURST_S + min(plan.burst_after_s, warm_up_s + calm_s),
            tail_s=0.0,
            stall_s=120.0,
        )
        return _recorded(
            plan, seat, Cell(ALL, plan.longest_s, "burst"), mode, 0, conditions, "burst"
        )

    return Step(f"ten times {rate:,}/s for {BURST_S:g} s: {mode}", measure)


def _backlog(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
    """A million rows that are there before the first batch."""

    def measure() -> Record:
        seat = seats.of(mode)
        conditions = msgspec.structs.replace(
            plan.conditions(mode, plan.longest_s, "constant_high", rate, 0.0),
            parts=(MODES[mode].part(BACKLOG_QUERY, plan.longest_s),),
            backlog_rows=plan.backlog_rows,
            measure_s=plan.measured_s(plan.longest_s) + plan.burst_after_s,
            tail_s=0.0,
            stall_s=120.0,
        )
        cell = Cell(ALL, plan.longest_s, "backlog")
        return _recorded(plan, seat, cell, mode, 0, conditions, "backlog")

    return Step(f"{plan.backlog_rows:,} rows before the first batch: {mode}", measure)


def _beside(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
    """A query with a deadline of 1 s beside one whose batches hold 10 s of rows."""
    short_s, long_s = BESIDE_S

    def measure() -> Record:
        seat = seats.of(mode)
        warm_up_s = plan.warm_up_s if seat.is_warm else plan.first_warm_up_s
        hurried, patient = BESIDE
        conditions = msgspec.structs.replace(
            plan.conditions(mode, long_s, "high", rate, warm_up_s),
            parts=(MODES[mode].part(hurried, short_s), MODES[mode].part(patient, long_s)),
            measure_s=max(plan.measure_s, 2 * long_s),
        )
        cell = Cell(ALL, short_s, "beside")
        return _recorded(plan, seat, cell, mode, 0, conditions, "beside")

    words = f"a deadline of {short_s:g} s beside batches of {long_s:g} s: {mode}"
    return Step(words, measure)
