"""Rates of the deadlines suite: those of the papers where they hold, else shares. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock_lab.experiment.figures import ordered
from penstock_lab.experiment.search import tried_of
from penstock_lab.suites.deadlines.cells import HIGH_SHARE, TRAFFIC, Plan
from penstock_lab.suites.deadlines.modes import OURS
from penstock_lab.suites.deadlines.record import Record

PUBLISHED = {"high": 10_000, "low": 1_000, "constant_high": 10_000, "constant_low": 1_000}
"""Rows per second of the papers' traffic."""


class TrafficRate(msgspec.Struct, frozen=True):
    """Rows per second of one kind of traffic, and why so many."""

    per_s: int
    reason: str


def held_rates(plan: Plan, records: Sequence[Record]) -> dict[str, int]:
    """The highest rate that held, by mode it was looked for; 0 where none did."""
    held = {}
    for mode in plan.searched:
        runs = [r.run for r in records if r.kind == "sustain" and r.system == mode]
        rates = (tried.rate for tried in tried_of(runs) if tried.is_sustained)
        held[mode] = max(rates, default=0)
    return held


def sustained_rate(held: Mapping[str, int], plan: Plan) -> float:
    """The rate that the better baseline sustains, or that the given one is a share of.

    Where no baseline held a rate that was tried it is ours, or else half the first.
    """
    if plan.rate is not None:
        return plan.rate / HIGH_SHARE
    assert plan.search is not None
    best = max((rate for mode, rate in held.items() if mode != OURS), default=0)
    return best or held.get(OURS) or plan.search.rate_first // 2


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
    sustained = sustained_rate(held_rates(plan, records), plan)
    run = ordered(record.cell.traffic for record in records if record.kind == "compared")
    return [traffic_rate(plan, traffic, sustained).reason for traffic in run]
