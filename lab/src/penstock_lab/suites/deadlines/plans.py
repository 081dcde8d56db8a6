"""The plan of a command line of the deadlines suite, and the parts of the full run that a quick one
lacks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.errors import BadCall
from penstock_lab.experiment.plan import known
from penstock_lab.experiment.query_sets import query_set_of
from penstock_lab.suites.deadlines.cells import DEADLINES_S, QUERIES, TRAFFIC, Plan, Search
from penstock_lab.suites.deadlines.modes import MODES, QUICK_MODES


def plan_of(
    *,
    quick: bool = False,
    modes: Sequence[str] = (),
    deadlines_s: Sequence[float] = (),
    traffics: Sequence[str] = (),
    rate: int | None = None,
    seconds: float | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    chosen = known(modes, tuple(MODES), "deadlines has no mode {}; it has", "unknown_mode")
    refused = "deadlines has no traffic {}; it has"
    asked = known(traffics, tuple(TRAFFIC), refused, "unknown_traffic")
    if any(bound <= 0 for bound in deadlines_s) or (seconds is not None and seconds <= 0):
        raise BadCall("nothing would be measured; give seconds above 0", code="bad_request")
    bounds = tuple(sorted(set(deadlines_s))) or (DEADLINES_S[:2] if quick else DEADLINES_S)
    plan = Plan(
        chosen or (QUICK_MODES if quick else tuple(MODES)),
        bounds,
        asked or (("high",) if quick else tuple(TRAFFIC)),
        repeats=3 if quick else 5,
        measure_s=seconds or (10.0 if quick else 60.0),
        measure_deadlines=3 if quick else 12,
        warm_up_s=8.0 if quick else 20.0,
        first_warm_up_s=20.0 if quick else 60.0,
        search=None if rate else Search(2_000, tries_max=4 if quick else 8),
        rate=rate,
        spare_repeats=1 if quick else 3,
        event_speed=query_set_of(QUERIES[0]).event_speed,
        again_max=4 if quick else 60,
    )
    if quick:
        plan = msgspec.structs.replace(plan, left_out=left_out(plan))
    if seconds:
        return msgspec.structs.replace(plan, measure_deadlines=0)
    return plan


def left_out(plan: Plan) -> tuple[str, ...]:
    """Modes, deadlines and traffic of the full run that a quick one lacks, in sentences."""
    absent = {
        "modes": [mode for mode in MODES if mode not in plan.modes],
        "deadlines": [f"{each:g} s" for each in DEADLINES_S if each not in plan.deadlines_s],
        "traffic": [name for name in TRAFFIC if name not in plan.traffics],
    }
    sentences = [f"{kind}: {', '.join(names)}" for kind, names in absent.items() if names]
    if plan.search is not None:
        sentences.append(f"rates that hold are found once, in {plan.search.tries_max} steps each")
    return tuple(sentences)
