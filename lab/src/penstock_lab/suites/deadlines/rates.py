"""Rates of the deadlines suite: those of the papers where they hold, else shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from penstock_lab.experiment.figures import ordered
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.search import Tried, tried_of
from penstock_lab.suites.deadlines.cells import HIGH_SHARE, TRAFFIC, Plan
from penstock_lab.suites.deadlines.modes import OURS
from penstock_lab.suites.deadlines.record import Record

PUBLISHED = {"high": 10_000, "low": 1_000, "constant_high": 10_000, "constant_low": 1_000}
"""Rows per second of the papers' traffic."""

Searches: TypeAlias = Mapping[tuple[str, float], tuple[Tried, ...]]
"""By mode and deadline, the rates that were tried and how each went."""


class TrafficRate(msgspec.Struct, frozen=True):
    """Rows per second of one kind of traffic, and why so many."""

    per_s: int
    reason: str


def searched_runs(records: Sequence[Record], mode: str, deadline_s: float) -> list[Run]:
    """The runs of one search, in their order."""
    return [
        record.run
        for record in records
        if (record.kind, record.system, record.cell.deadline_s) == ("sustain", mode, deadline_s)
    ]


def searches_of(plan: Plan, records: Sequence[Record]) -> Searches:
    """The rates tried in every search that has begun."""
    each = {(mode, bound): searched_runs(records, mode, bound) for mode, bound in plan.searched}
    return {search: tried_of(runs) for search, runs in each.items() if runs}


def held_rate(tried: Sequence[Tried]) -> int:
    """The highest rate that held; 0 where none did."""
    return max((each.rate for each in tried if each.is_sustained), default=0)


def sustained_rate(searches: Searches, plan: Plan) -> float:
    """The rate that the better baseline sustains, or that the given one is a share of.

    Where no baseline held a rate that was tried it is ours, or else half the first.
    """
    if plan.rate is not None:
        return plan.rate / HIGH_SHARE
    assert plan.search is not None
    held = {
        mode: held_rate(tried)
        for (mode, bound), tried in searches.items()
        if bound == plan.longest_s
    }
    best = max((rate for mode, rate in held.items() if mode != OURS), default=0)
    return best or held.get(OURS) or plan.search.rate_first // 2


def own_rate(searches: Searches, plan: Plan, deadline_s: float) -> float:
    """The rate that our own mode sustains at a deadline; half the lowest where none that was tried
    held, which is what the search would have tried next. As high traffic where it was given."""
    if plan.rate is not None:
        return sustained_rate(searches, plan)
    tried = searches.get((OURS, deadline_s), ())
    lowest = min((each.rate for each in tried), default=0)
    return held_rate(tried) or lowest // 2 or sustained_rate(searches, plan)


def traffic_rate(plan: Plan, traffic: str, sustained: float) -> TrafficRate:
    """The papers' rate if it holds with as much to spare as high traffic has, else a share."""
    share, published = TRAFFIC[traffic][1], PUBLISHED[traffic]
    rate = max(round(sustained * share), 1)
    words = f"{traffic.replace('_', ' ')} traffic: "
    if plan.rate is not None:
        return TrafficRate(rate, f"{words}{rate:,}/s, by the rate that was given")
    if published <= sustained * HIGH_SHARE:
        return TrafficRate(published, f"{words}{published:,}/s, as in the papers")
    return TrafficRate(
        rate,
        f"{words}{rate:,}/s, {share:.0%} of {sustained:,.0f}/s, which the better baseline "
        f"sustains: the {published:,}/s of the papers do not hold here",
    )


def rate_reasons(plan: Plan, records: Sequence[Record]) -> list[str]:
    """A sentence for every kind of traffic that was run."""
    sustained = sustained_rate(searches_of(plan, records), plan)
    run = ordered(record.cell.traffic for record in records if record.kind == "compared")
    return [traffic_rate(plan, traffic, sustained).reason for traffic in run]
