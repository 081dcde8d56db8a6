"""Shocks of the deadlines suite: ten times the rate, a backlog, a patient neighbour."""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.turns import Step
from penstock_lab.suites.deadlines.cells import (
    ALL,
    BACKLOG_QUERY,
    BESIDE,
    BESIDE_S,
    BURST_S,
    Cell,
    Plan,
)
from penstock_lab.suites.deadlines.modes import MODES
from penstock_lab.suites.deadlines.record import Record
from penstock_lab.suites.deadlines.seats import Seats, recorded


def burst(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
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
        return recorded(
            plan, seat, Cell(ALL, plan.longest_s, "burst"), mode, 0, conditions, "burst"
        )

    return Step(f"ten times {rate:,}/s for {BURST_S:g} s: {mode}", measure)


def backlog(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
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
        return recorded(plan, seat, cell, mode, 0, conditions, "backlog")

    return Step(f"{plan.backlog_rows:,} rows before the first batch: {mode}", measure)


def beside(plan: Plan, seats: Seats, mode: str, rate: int) -> Step[Record]:
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
        return recorded(plan, seat, cell, mode, 0, conditions, "beside")

    words = f"a deadline of {short_s:g} s beside batches of {long_s:g} s: {mode}"
    return Step(words, measure)


STEPS = {"burst": burst, "backlog": backlog, "beside": beside}
