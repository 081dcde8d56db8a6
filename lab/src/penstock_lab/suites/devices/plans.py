"""Plans of the devices suite: what a command line asks for, quick or whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from penstock_lab.experiment.plan import known
from penstock_lab.measure.gpu_absence import gpu_absence
from penstock_lab.suites.devices.cells import (
    CORES_BESIDE,
    ON_SPARK,
    PARTS,
    QUICK_SIZES,
    RATE_HIGH,
    RATE_PAPER,
    SIZES,
    SPARK,
    PartName,
    Plan,
    Search,
)
from penstock_lab.suites.devices.modes import MODES, QUICK_MODES
from penstock_lab.suites.devices.records import Record, on_spark, records_in
from penstock_lab.suites.devices.workloads import WORKLOADS

QUICK_TRAFFIC = (("constant", RATE_PAPER), ("random", RATE_HIGH))
FULL_TRAFFIC = (
    ("constant", RATE_PAPER),
    ("random", RATE_PAPER),
    ("constant", RATE_HIGH),
    ("random", RATE_HIGH),
)


ORDERS = {
    False: "ours after the others, so it found code compiled, workers started and costs learned",
    True: "ours before the others, which found code compiled and workers started",
}
"""The modes of a repeat as they are, and reversed."""


class Asked(msgspec.Struct, frozen=True):
    """A plan, and the records of earlier results that are taken in before it is carried out."""

    plan: Plan
    earlier: tuple[Record, ...] = ()

    @property
    def first_repeat(self) -> int:
        """The number of the first repeat that is measured here."""
        return 1 + max((record.repeat for record in self.earlier), default=-1)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what the repeats of the result do not even out."""
        return tuple(
            f"{', '.join(names)}: one order of modes only, {order}; a repeat that takes this "
            "result in with --merge runs them the other way round"
            for is_reversed, order in ORDERS.items()
            if (names := [name for name in WORKLOADS if self._orders(name) == {is_reversed}])
        )

    def _orders(self, workload: str) -> set[bool]:
        """The orders of a workload's modes over all repeats: whether they are reversed."""
        orders = {
            record.is_reversed
            for record in on_spark(self.earlier, "compared")
            if record.cell.workload == workload and record.is_reversed is not None
        }
        plan, first = self.plan, self.first_repeat
        if plan.skipped is None and "latency" in plan.parts and workload in plan.workloads:
            orders |= {number % 2 == 1 for number in range(first, first + plan.repeats)}
        return orders


def asked_of(
    *,
    quick: bool = False,
    parts: Sequence[str] = (),
    workloads: Sequence[str] = (),
    modes: Sequence[str] = (),
    minutes_max: float | None = None,
    merged: Sequence[Path] = (),
    absence: Callable[[], str | None] = gpu_absence,
    cores: int | None = None,
) -> Asked:
    """The plan of a command line; raises BadCall, with the choices, for an unknown name.

    A workload alone asks for the parts on Spark. With results to merge nothing is measured but
    the parts that are named.
    """
    wanted, names, asked = (
        known(given, choices, f"devices has no {kind} {{}}; it has", f"unknown_{kind}")
        for given, choices, kind in (
            (workloads, tuple(name.lower() for name in WORKLOADS), "workload"),
            (modes, tuple(MODES), "mode"),
            (parts, (*PARTS, SPARK), "part"),
        )
    )
    earlier = records_in(merged)
    chosen = _parts(asked, has_workloads=bool(wanted), is_merge=bool(merged))
    plan = Plan(
        chosen,
        tuple(name for name in WORKLOADS if name.lower() in wanted or not wanted),
        names or (QUICK_MODES if quick else tuple(MODES)),
        QUICK_TRAFFIC if quick else FULL_TRAFFIC,
        cores or max((os.cpu_count() or 2) - CORES_BESIDE, 2),
        repeats=1 if quick else 3,
        sizes=QUICK_SIZES if quick else SIZES,
        operation_s=0.25 if quick else 1.0,
        search=Search() if quick else Search(tries_max=6),
        measure_s=15.0 if quick else 60.0,
        drain_s=20.0 if quick else 60.0,
        minutes_max=minutes_max,
        again_max=2 if quick else 20,
        skipped=absence() if chosen else None,
    )
    return Asked(plan, earlier)


def _parts(asked: Sequence[str], *, has_workloads: bool, is_merge: bool) -> tuple[PartName, ...]:
    if asked:
        return tuple(
            part for part in PARTS if part in asked or (SPARK in asked and part in ON_SPARK)
        )
    if is_merge:
        return ()
    return ON_SPARK if has_workloads else PARTS
