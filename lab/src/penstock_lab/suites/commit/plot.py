"""Draws batch time over batch number and how latency is spread, a pair of pictures per cell.

Needs matplotlib, an optional dependency; the suite says so before anything has started.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock_lab.experiment.plot import COLOURS, PIXELS_PER_INCH, frame, spread
from penstock_lab.experiment.suites import key_of
from penstock_lab.suites.commit.figures import ordered
from penstock_lab.suites.commit.plan import Plan
from penstock_lab.suites.commit.record import Measured

ROW_INCHES = 2.4
PAIR_INCHES = 10.0
TOP_INCHES = 0.5
ROWS_MAX = 8
"""From so many cells on, two of them share a row."""


def draw(plan: Plan, runs: Sequence[Measured], path: Path) -> None:
    """Only runs that count are drawn; a cell without any says so."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    shown = [one for one in runs if one.kind != "sustain"]
    panels = ordered(_panel(one) for one in shown)
    across = 1 if len(panels) <= ROWS_MAX else 2
    rows = -(-len(panels) // across)
    height = TOP_INCHES + ROW_INCHES * rows
    figure, axes = pyplot.subplots(
        rows, 2 * across, figsize=(PAIR_INCHES * across, height), squeeze=False
    )
    colours = dict(zip(plan.systems, COLOURS, strict=False))
    for place in range(rows * across):
        left, right = axes[place // across][2 * (place % across) :][:2]
        if place >= len(panels):
            left.set_axis_off()
            right.set_axis_off()
            continue
        counted = [one for one in shown if _panel(one) == panels[place] and one.is_counted]
        over_batches(left, panels[place], counted, colours)
        spread(right, "latency of visible results", [one.run for one in counted], colours)
    handles = [Line2D([], [], color=colours[name], label=name) for name in plan.systems]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False)
    figure.suptitle("commit: time of micro-batches", x=0.01, y=0.995, va="top", ha="left")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.3 / height))
    figure.savefig(path, dpi=PIXELS_PER_INCH)
    pyplot.close(figure)


def over_batches(axis: Any, title: str, runs: Sequence[Measured], colours: dict[str, str]) -> None:
    """A line per run; the batches of the warm-up are drawn too, as in the paper."""
    for one in runs:
        full = [batch for batch in one.batches if batch.rows]
        axis.plot(
            range(len(full)),
            [batch.took_ms for batch in full],
            color=colours[one.system],
            alpha=0.7,
            linewidth=1.1,
            marker=".",
            markersize=2.5,
        )
    frame(axis, title, [one.run for one in runs], "batch", "time of the batch, ms")
    axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)


def _panel(one: Measured) -> str:
    """The title of the panel it belongs to: long runs share one, with a changelog or without."""
    if one.kind == "compared":
        return one.cell.name
    return f"{key_of(one.cell.query)}, {one.cell.store}, long run"
