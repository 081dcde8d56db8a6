"""Records of made-up runs of the recovery suite, and the names of the figures they give."""

from __future__ import annotations

from penstock_lab.measure.recoveries import EXECUTOR, Recovered
from penstock_lab.suites.recovery import SUITE
from penstock_lab.suites.recovery.cells import plan_of
from support.bench_records import names_of


def recovery_names() -> set[str]:
    """Names of the figures of a quick plan: every system after every kill that it is given."""
    plan = plan_of(quick=True)
    records = [
        Recovered(system, 0, dict.fromkeys(plan.local_kills_of(system), 6_000.0), 50)
        for system in plan.systems
    ]
    records += [Recovered(system, 0, {EXECUTOR: 6_000.0}, 50) for system in plan.clustered]
    return names_of(SUITE, plan, records)
