"""Draws latency over time and how it is spread, a row per query, a colour per system.

Needs matplotlib, an optional dependency; `needs` says so before anything has started.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock_lab.experiment.plan import Plan
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.suites import key_of

COLOURS = ("#4269d0", "#efb118", "#3ca951", "#a463f2", "#ff725c")
ROW_INCHES = 2.6
WIDTH_INCHES = 11.0
PIXELS_PER_INCH = 110


def draw(plan: Plan, runs: Sequence[Run], path: Path) -> None:
    """Only runs that count are drawn; a query without any has an empty row that says so."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    rows = len(plan.queries)
    figure, axes = pyplot.subplots(
        rows, 2, figsize=(WIDTH_INCHES, 0.9 + ROW_INCHES * rows), squeeze=False
    )
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(plan.systems)}
    for row, query in enumerate(plan.queries):
        counted = [run for run in runs if run.query == query and run.is_counted]
        title = f"{key_of(query)}, {plan.rate_of(query):,} events/s"
        # The first query of a process runs on code not compiled yet, and warms up for longer.
        warm_up_s = plan.warm_up_s if row else plan.first_warm_up_s
        over_time(axes[row][0], title, counted, colours, warm_up_s)
        spread(axes[row][1], title, counted, colours)
    handles = [Line2D([], [], color=colours[name], label=name) for name in plan.systems]
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), frameon=False)
    figure.suptitle(
        f"{plan.suite}: event-time latency of visible results",
        x=0.01,
        y=0.995,
        va="top",
        ha="left",
    )
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.5 / (0.9 + ROW_INCHES * rows)))
    figure.savefig(path, dpi=PIXELS_PER_INCH)
    pyplot.close(figure)


def over_time(
    axis: Any, key: str, runs: Sequence[Run], colours: dict[str, str], warm_up_s: float
) -> None:
    """The p99 of every second, a line per run; the warm-up is shaded."""
    axis.axvspan(0, warm_up_s, color="0.93", linewidth=0)
    for run in runs:
        seconds = [one.second + 0.5 for one in run.series]
        axis.plot(
            seconds,
            [one.p99_ms for one in run.series],
            color=colours[run.system],
            alpha=0.75,
            linewidth=1.2,
            marker=".",
            markersize=3,
        )
    frame(axis, key, runs, "s since the first send", "p99 per second, ms")
    axis.set_ylim(bottom=0)


def spread(axis: Any, key: str, runs: Sequence[Run], colours: dict[str, str]) -> None:
    """Which share of the results is no later than a latency, a line per run."""
    for run in runs:
        shares = [n / (len(run.curve) - 1) for n in range(len(run.curve))]
        axis.plot(run.curve, shares, color=colours[run.system], alpha=0.75, linewidth=1.2)
    axis.axhline(0.99, color="0.6", linewidth=0.7, linestyle=":")
    frame(axis, key, runs, "latency, ms", "share of results")
    axis.set_ylim(0, 1.02)
    axis.set_xlim(left=0)


def frame(axis: Any, key: str, runs: Sequence[Run], x: str, y: str) -> None:
    axis.set_title(key, loc="left", fontsize=10, fontweight="bold")
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(color="0.9", linewidth=0.6)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    if not runs:
        axis.text(0.5, 0.5, "no run counts", transform=axis.transAxes, ha="center", color="0.5")
