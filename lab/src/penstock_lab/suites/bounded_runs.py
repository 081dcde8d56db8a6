"""Cells of the bounded suite, and their runs: a fixed trigger of 10 s, and two policies.

One Spark process runs all of it, one query at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from penstock.errors import BadCall
from penstock_lab.experiment.joint_rig import JointBench, JointRig, JointSeat
from penstock_lab.experiment.record import Kind, Measured
from penstock_lab.experiment.search import searching
from penstock_lab.experiment.together import Part, QueryRun, Together, query_runs
from penstock_lab.experiment.turns import Step, Steps, Tell

STATIC = "static"
TRIGGER_S = 10.0
PAPER_RATE = 1_000
POLICIES = {
    # The query, and the policy of its windows: the paper's LR1S and LR1T.
    "lr_join_30_5": ("slide", {"policy": "slide", "slide": "5s"}),
    "lr_join_30_tumbling": ("running-mean", {"policy": "running-mean"}),
}
CONF = {
    "spark.sql.streaming.numRecentProgressUpdates": "5000",
}
VEHICLES_MIN, REPORT_EVERY_S = 120_000, 30
"""As many as the generator has; more where more report at once."""
AROUND_S = 12.0
START_S = 14.0


class Cell(msgspec.Struct, frozen=True):
    """A query at a rate."""

    query: str
    rate: int

    @property
    def name(self) -> str:
        return self.query if self.rate == PAPER_RATE else f"{self.query}@{self.rate}"

    @property
    def words(self) -> str:
        return f"{self.query} at {self.rate:,}/s"


class Record(Measured[Cell], frozen=True, kw_only=True):
    """A run, and what its batches were."""

    query_run: QueryRun


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    cells: tuple[Cell, ...]
    measure_s: float
    warm_up_s: float
    past_queries: tuple[str, ...]
    """Of which the rate is looked for at which the fixed trigger's latency grows."""
    past_s: float
    """How long a run of that search is measured."""
    rate_first: int = 8_000
    rate_max: int = 64_000
    tries_max: int = 4
    cores: int = 2

    @property
    def steps(self) -> int:
        return 2 * len(self.cells) + len(self.past_queries) * (self.tries_max + 1)

    @property
    def minutes(self) -> float:
        """About how long it takes."""
        long_s = 2 * len(self.cells) * (self.warm_up_s + self.measure_s + TRIGGER_S + AROUND_S)
        tried_s = (self.tries_max + 1) * (self.warm_up_s + self.past_s + TRIGGER_S + AROUND_S)
        return (START_S + long_s + len(self.past_queries) * tried_s) / 60


def plan_of(
    *,
    quick: bool = False,
    queries: Sequence[str] = (),
    rate: int | None = None,
    seconds: float | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    unknown = [query for query in queries if query not in POLICIES]
    if unknown:
        raise BadCall(
            f"bounded has no query {', '.join(unknown)}; it has {', '.join(POLICIES)}",
            code="unknown_query",
        )
    wanted = tuple(dict.fromkeys(queries)) or tuple(POLICIES)
    return Plan(
        tuple(Cell(query, rate or PAPER_RATE) for query in wanted),
        measure_s=seconds or (180.0 if quick else 1_200.0),
        warm_up_s=20.0 if quick else 60.0,
        past_queries=() if seconds else wanted[:1] if quick else wanted,
        past_s=45.0 if quick else 180.0,
    )


Open: TypeAlias = Callable[[Plan, Path], contextlib.AbstractContextManager[JointBench]]


def rig(plan: Plan, folder: Path) -> JointRig:
    return JointRig("penstock", folder, cores=plan.cores, conf=CONF, tells_commits=True)


def part_of(query: str, system: str) -> Part:
    if system == STATIC:
        return Part(query, TRIGGER_S)
    return Part(query, options=dict(POLICIES[query][1]))


def measured(
    plan: Plan,
    seat: JointSeat,
    cell: Cell,
    system: str,
    number: int,
    measure_s: float,
    kind: Kind = "compared",
) -> Record:
    conditions = Together(
        (part_of(cell.query, system),),
        cell.rate,
        plan.warm_up_s,
        measure_s,
        tail_s=TRIGGER_S,
        # As fast as the clock: slides and triggers are seconds of both.
        event_speed=1.0,
        generator={"vehicles": max(VEHICLES_MIN, cell.rate * REPORT_EVERY_S)},
        stall_s=6 * TRIGGER_S,
        drain_s=120.0,
    )
    query_run = query_runs(conditions, system, number, seat.run(conditions), ())[cell.query]
    return Record(cell, query_run.run, kind, query_run=query_run)


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    with contextlib.ExitStack() as closing:
        seat = JointSeat.taken(closing, opening(plan, folder / "spark"))
        for cell in plan.cells:
            for system in (STATIC, POLICIES[cell.query][0]):
                words = f"{cell.words}: {system}, {plan.measure_s:g} s"
                yield Step(words, partial(measured, plan, seat, cell, system, 0, plan.measure_s))
        for query in plan.past_queries:
            at = partial(_at, plan, seat, query)
            tried = yield from searching(plan, at)
            failed = min((try_.rate for try_ in tried if not try_.is_sustained), default=None)
            if failed is not None:
                cell, ours = Cell(query, failed), POLICIES[query][0]
                words = f"{cell.words}, where static grows: {ours}"
                past = partial(measured, plan, seat, cell, ours, 0, plan.past_s, "past limit")
                yield Step(words, past)


def _at(plan: Plan, seat: JointSeat, query: str, rate: int, number: int) -> Step[Record]:
    cell = Cell(query, rate)
    measure = partial(measured, plan, seat, cell, STATIC, number, plan.past_s, "sustain")
    return Step(f"{cell.words}: does {STATIC} hold it?", measure)
