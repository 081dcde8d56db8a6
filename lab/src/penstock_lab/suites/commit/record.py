"""What is kept of one run of one system at one cell."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from penstock_lab.experiment.record import Frame, Noted, Run, in_file, run_of
from penstock_lab.suites.commit.batches import Timed, within
from penstock_lab.suites.commit.cells import Cell
from penstock_lab.suites.commit.rig import Told

Kind = Literal["compared", "growth", "sustain"]


class Measured(msgspec.Struct, frozen=True):
    """A run as the other suites keep it, and what only this one asks for."""

    cell: Cell
    run: Run
    batches: list[Timed] = []
    """All that Spark reported, the warm-up's included."""
    took_ms: list[float] = []
    """Of the batches with rows that ran in the measured stretch, in order."""
    steps: dict[str, dict[str, float]] = {}
    rss_mb: float | None = None
    kind: Kind = "compared"

    @property
    def is_counted(self) -> bool:
        return self.run.is_counted

    @property
    def system(self) -> str:
        return self.run.system

    @property
    def repeat(self) -> int:
        return self.run.repeat

    @property
    def behind_batches(self) -> float | None:
        """How many committed batches the checkpoint location did not have yet at the end.

        None for a system that commits as Spark does. A run that is shorter than it takes to reach
        the bound of this looks better than a long one.
        """
        if "marker" not in self.steps:
            return None
        return self.steps["marker"]["count"] - self.steps.get("copy", {"count": 0.0})["count"]


def measured_of(
    cell: Cell,
    system: str,
    repeat: int,
    noted: Noted,
    told: Told,
    frame: Frame,
    kind: Kind = "compared",
) -> Measured:
    """Pure: the run judged, and its batches cut to the stretch that is measured."""
    run = run_of(cell.query, system, repeat, cell.rate, noted, frame)
    took_ms: list[float] = []
    if noted.told is not None:
        warm_ms = noted.told.started_ms + frame.warm_up_s * 1000
        inside = within(told.batches, warm_ms, warm_ms + frame.measure_s * 1000)
        took_ms = [one.took_ms for one in inside]
    return Measured(cell, run, told.batches, took_ms, told.steps, told.rss_mb, kind)


def for_file(one: Measured) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    columns = {
        name: [getattr(batch, name) for batch in one.batches] for name in Timed.__struct_fields__
    }
    return {
        **in_file(one.run),
        "kind": one.kind,
        "cell": one.cell.name,
        "batches": columns,
        "measured_batches": len(one.took_ms),
        "steps": one.steps,
        "rss_mb": one.rss_mb,
        "behind_batches": one.behind_batches,
    }
