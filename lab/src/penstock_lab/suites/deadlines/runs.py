"""Runs of the deadlines suite: rates that hold, modes in turns, spare traffic, and three shocks."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Mapping
from functools import partial
from pathlib import Path

from penstock_lab.experiment.search import Tried, searching
from penstock_lab.experiment.turns import Retries, Step, Steps, Tell, rotated, with_retry
from penstock_lab.suites.deadlines import shocks
from penstock_lab.suites.deadlines.cells import (
    ALL,
    BURST_SHARE,
    SPARE_SHARE,
    Cell,
    Plan,
    Search,
)
from penstock_lab.suites.deadlines.modes import OURS
from penstock_lab.suites.deadlines.rates import (
    Searches,
    held_rate,
    own_rate,
    sustained_rate,
    traffic_rate,
)
from penstock_lab.suites.deadlines.record import Record
from penstock_lab.suites.deadlines.seats import Open, Seats, measured, rig


def runs(plan: Plan, folder: Path, _tell: Tell, opening: Open = rig) -> Steps[Record]:
    with contextlib.ExitStack() as closing:
        seats = Seats(plan, folder, opening, closing)
        searches = yield from _searched(plan, seats)
        sustained = sustained_rate(searches, plan)
        retries = Retries(plan.again_max)
        yield from _compare(plan, seats, sustained, retries)
        if OURS in plan.modes:
            own = {bound: own_rate(searches, plan, bound) for bound in plan.deadlines_s}
            yield from _with_spare(plan, seats, own, retries)
        for shock, mode in plan.shock_runs:
            yield shocks.STEPS[shock](plan, seats, mode, round(sustained * BURST_SHARE))


def _searched(plan: Plan, seats: Seats) -> Generator[Step[Record], Record, Searches]:
    """The rates tried, by mode and deadline; each search begins where the one before ended."""
    searches: dict[tuple[str, float], tuple[Tried, ...]] = {}
    for mode, deadline_s in plan.searched:
        assert plan.search is not None
        held = max(map(held_rate, searches.values()), default=0)
        first = held or plan.search.rate_first
        search = Search(first, plan.search.rate_max, plan.search.tries_max)
        step_at = partial(_at, plan, seats, mode, deadline_s)
        searches[mode, deadline_s] = yield from searching(search, step_at)
    return searches


def _at(
    plan: Plan, seats: Seats, mode: str, deadline_s: float, rate: int, number: int
) -> Step[Record]:
    cell = Cell(ALL, deadline_s, "high")
    words = f"{mode} with a deadline of {deadline_s:g} s: does it hold {rate:,}/s?"
    return Step(words, partial(measured, plan, seats, cell, mode, number, rate, "sustain"))


def _compare(plan: Plan, seats: Seats, sustained: float, retries: Retries) -> Steps[Record]:
    for repeat in range(plan.repeats):
        for traffic in plan.traffics:
            here = traffic_rate(plan, traffic, sustained).per_s
            for mode, deadline_s in rotated(tuple(plan.compared_runs), repeat * 3):
                cell = Cell(ALL, deadline_s, traffic)
                words = f"{cell.words}, {here:,}/s: {mode}, {repeat + 1} of {plan.repeats}"
                measure = partial(measured, plan, seats, cell, mode, repeat, here, "compared")
                yield from with_retry(words, measure, measure, retries)


def _with_spare(
    plan: Plan, seats: Seats, own: Mapping[float, float], retries: Retries
) -> Steps[Record]:
    for repeat in range(plan.spare_repeats):
        for deadline_s in plan.deadlines_s:
            rate = round(own[deadline_s] * SPARE_SHARE)
            cell = Cell(ALL, deadline_s, "high")
            words = f"{cell.words}, {rate:,}/s, with spare: {OURS}, {repeat + 1}"
            measure = partial(measured, plan, seats, cell, OURS, repeat, rate, "spare")
            yield from with_retry(words, measure, measure, retries)
