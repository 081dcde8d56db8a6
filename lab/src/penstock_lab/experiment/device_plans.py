"""Plans of a query's batches as its server explains them, summed up for a run. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from penstock.model.device_plans import ExplainedPlan, QueryDevices

SPLIT = "split"


class PlannedBatches(msgspec.Struct, frozen=True):
    """Plans of a query's batches: how many there were, and what became of the last of them."""

    batches: int = 0
    probes: int = 0
    ways: dict[str, float] = {}
    """The share of the last batches by the way they took: `spark`, `panes`, `cpu`, `gpu`, or
    `split` over both devices, be it because some tasks could not have the GPU."""
    inflection_bytes: float | None = None
    tuned_bytes: float | None = None
    """The inflection point that Eq. 10 of LMStream has arrived at."""
    fallbacks: dict[str, int] = {}
    """Tasks that were to have a GPU and ran on the CPU, by cause."""
    notes: tuple[str, ...] = ()


def planned_batches(devices: QueryDevices) -> PlannedBatches:
    """The planning of a query, summed up; ways are of the batches that the server remembers."""
    return PlannedBatches(
        devices.batches,
        devices.probes,
        ways_of(devices.plans),
        devices.inflection_bytes,
        devices.tuned_bytes,
        dict(devices.fallbacks),
        devices.notes,
    )


def ways_of(plans: Sequence[ExplainedPlan]) -> dict[str, float]:
    """The share of these batches by the way that each took."""
    ways = Counter(way_of(plan) for plan in plans)
    return {way: round(count / len(plans), 3) for way, count in sorted(ways.items())}


def ways_in_words(ways: Mapping[str, float]) -> str:
    """Ways and their shares: `cpu 25 %, panes 75 %`."""
    return ", ".join(f"{way} {100 * share:.0f} %" for way, share in ways.items())


def way_of(plan: ExplainedPlan) -> str:
    """The path of a batch, and of the columnar one its device: the one that ran, or before that is
    known the one of the plan."""
    path = plan.ran_path or plan.path
    if path != "columnar":
        return path
    used = {device for operation in plan.operations for device in operation.ran_tasks}
    used = used or {operation.device for operation in plan.operations}
    return SPLIT if len(used) > 1 else next(iter(used), "cpu")
