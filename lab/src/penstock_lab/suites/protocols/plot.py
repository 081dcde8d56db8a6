"""Draws how latency is spread, a panel per query and interval, a colour per protocol."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock_lab.experiment.plot import COLOURS, PIXELS_PER_INCH, spread
from penstock_lab.suites.protocols.plan import Plan
from penstock_lab.suites.protocols.record import Measured

PANEL_INCHES = (3.6, 2.6)
TOP_INCHES = 0.7


def draw(plan: Plan, runs: Sequence[Measured], path: Path) -> None:
    """Only runs that count are drawn, a line each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    rows, columns = len(plan.queries), len(plan.intervals_ms)
    height = TOP_INCHES + PANEL_INCHES[1] * rows
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(PANEL_INCHES[0] * columns, height), squeeze=False
    )
    colours: dict[str, str] = dict(zip(plan.protocols, COLOURS, strict=False))
    for place, cell in enumerate(plan.cells):
        counted = [one.run for one in runs if one.cell == cell and one.is_counted]
        spread(axes[place // columns][place % columns], cell.words, counted, colours)
    handles = [Line2D([], [], color=colours[name], label=name) for name in plan.protocols]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False)
    figure.suptitle(
        f"protocols on {plan.log}: event-time latency", x=0.01, y=0.995, va="top", ha="left"
    )
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / height))
    figure.savefig(path, dpi=PIXELS_PER_INCH)
    pyplot.close(figure)
