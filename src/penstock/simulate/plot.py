"""The picture of simulated runs: the share of rows by latency, and the tail by workers.

Needs matplotlib, which comes with the laboratory.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import BadCall
from penstock.simulate.summary import Summary

COLOURS = ("#4269d0", "#efb118", "#3ca951", "#a463f2", "#ff725c", "#6cc5b0", "#9c6b4e")
PIXELS_PER_INCH = 110
CURVES_MAX = 3
CURVE_END = 3.0


def require_matplotlib() -> None:
    """Raises BadCall where pictures cannot be drawn, before anything is simulated."""
    if importlib.util.find_spec("matplotlib") is None:
        raise BadCall(
            "--plot draws with matplotlib, which is missing; install it with: "
            "pip install penstock-lab (or pip install matplotlib)",
            code="no_matplotlib",
        )


def draw(path: Path, title: str, runs: Sequence[Summary]) -> None:
    """A panel with a curve per system for each number of workers, then the 95th percentiles."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    workers = sorted({run.workers for run in runs})
    systems = list(dict.fromkeys(run.system for run in runs))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(systems)}
    curves = workers[:CURVES_MAX]
    panels = len(curves) + 1
    figure, axes = pyplot.subplots(1, panels, figsize=(4.4 * panels, 4.4), squeeze=False)
    try:
        for axis, count in zip(axes[0], curves, strict=False):
            _draw_curves(axis, count, [run for run in runs if run.workers == count], colours)
        _draw_tails(axes[0][-1], runs, workers, systems, colours)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.suptitle(title, x=0.01, y=0.99, va="top", ha="left", fontsize=10)
        figure.legend(
            handles, labels, loc="lower center", ncols=min(len(systems), 4), frameon=False
        )
        rows = -(-len(systems) // 4)
        figure.tight_layout(rect=(0, 0.02 + 0.05 * rows, 1, 0.97))
        figure.savefig(path, dpi=PIXELS_PER_INCH)
    finally:
        pyplot.close(figure)


def _draw_curves(axis: Any, workers: int, runs: Sequence[Summary], colours: dict[str, str]) -> None:
    """The share of rows that are visible within a share of their deadline."""
    for run in runs:
        shares = [place / (len(run.curve) - 1) for place in range(len(run.curve))]
        axis.plot(run.curve, shares, color=colours[run.system], label=run.system, linewidth=1.4)
    axis.axvline(1.0, color="0.4", linewidth=0.8, linestyle=":")
    longest = max((run.curve[-1] for run in runs if run.curve), default=0.0)
    axis.set_xlim(0, min(max(longest, 1.0) * 1.05, CURVE_END))
    axis.set_ylim(0, 1.02)
    _frame(axis, f"{workers} workers", "latency / deadline", "share of rows")


def _draw_tails(
    axis: Any,
    runs: Sequence[Summary],
    workers: Sequence[int],
    systems: Sequence[str],
    colours: dict[str, str],
) -> None:
    """The 95th percentile of latency over deadline, a bar per system and number of workers."""
    width = 0.8 / len(systems)
    for place, system in enumerate(systems):
        by_workers = {run.workers: run.relative_p95 for run in runs if run.system == system}
        axis.bar(
            [number + place * width for number in range(len(workers))],
            [by_workers.get(count, 0.0) for count in workers],
            width,
            color=colours[system],
        )
    axis.axhline(1.0, color="0.4", linewidth=0.8, linestyle=":")
    middle = width * (len(systems) - 1) / 2
    axis.set_xticks([number + middle for number in range(len(workers))], map(str, workers))
    _frame(axis, "95th percentile", "workers", "latency / deadline")


def _frame(axis: Any, title: str, x: str, y: str) -> None:
    axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axis.set_xlabel(x, fontsize=8)
    axis.set_ylabel(y, fontsize=8)
    axis.tick_params(labelsize=8)
    axis.grid(color="0.9", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
