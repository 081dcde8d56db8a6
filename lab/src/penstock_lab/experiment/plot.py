"""Pictures of runs: a panel per cell, a line per run, a colour per system.

Needs matplotlib, an optional dependency; the harness says so before anything has started.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.record import Measured, Run

COLOURS = (
    *("#4269d0", "#efb118", "#3ca951", "#a463f2", "#ff725c"),
    *("#6cc5b0", "#ff8ab7", "#97bbf5", "#9c6b4e", "#9498a0", "#1b1e23", "#8a9a00"),
)
PIXELS_PER_INCH = 110
TITLE_INCHES, LEGEND_INCHES, LEGEND_LINE_INCHES = 0.25, 1.3, 0.25
"""Height of a title, and width and height that a system takes in the legend below it."""


@contextlib.contextmanager
def picture(
    path: Path,
    title: str,
    systems: Sequence[str],
    grid: tuple[int, int],
    inches: tuple[float, float],
    top_inches: float,
) -> Iterator[tuple[Any, dict[str, str]]]:
    """Axes in rows and columns to draw on, and a colour for each system; saved at the end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.lines import Line2D

    figure, axes = pyplot.subplots(*grid, figsize=inches, squeeze=False)
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(systems)}
    try:
        yield axes, colours
        if title:
            handles = [Line2D([], [], color=colours[name], label=name) for name in systems]
            # Below the title, as many systems side by side as the picture is wide.
            across = max(1, int(inches[0] / LEGEND_INCHES))
            figure.legend(
                handles=handles,
                loc="upper left",
                bbox_to_anchor=(0.0, 1 - TITLE_INCHES / inches[1]),
                ncols=across,
                frameon=False,
                fontsize="small",
            )
            figure.suptitle(title, x=0.01, y=0.995, va="top", ha="left")
            lines = math.ceil(len(handles) / across)
            top_inches = max(top_inches, TITLE_INCHES + 0.2 + lines * LEGEND_LINE_INCHES)
        figure.tight_layout(rect=(0, 0, 1, 1 - top_inches / inches[1]))
        figure.savefig(path, dpi=PIXELS_PER_INCH)
    finally:
        pyplot.close(figure)


def over_time(
    axis: Any, key: str, runs: Sequence[Run], colours: dict[str, str], warm_up_s: float
) -> None:
    """The p99 of every second, a line per run; the warm-up is shaded."""
    axis.axvspan(0, warm_up_s, color="0.93", linewidth=0)
    for run in runs:
        seconds = [second.second + 0.5 for second in run.series]
        axis.plot(
            seconds,
            [second.p99_ms for second in run.series],
            color=colours[run.system],
            alpha=0.75,
            linewidth=1.2,
            marker=".",
            markersize=3,
        )
    frame(axis, key, runs, "s since the first send", "p99 per second, ms")
    axis.set_ylim(bottom=0)


def spread(axis: Any, key: str, runs: Sequence[Run], colours: dict[str, str]) -> None:
    """The share of results that is no later than a latency, a line per run."""
    for run in runs:
        shares = [n / (len(run.curve) - 1) for n in range(len(run.curve))]
        axis.plot(run.curve, shares, color=colours[run.system], alpha=0.75, linewidth=1.2)
    axis.axhline(0.99, color="0.6", linewidth=0.7, linestyle=":")
    frame(axis, key, runs, "latency, ms", "share of results")
    axis.set_ylim(0, 1.02)
    axis.set_xlim(left=0)


def over_batches(
    axis: Any,
    key: str,
    records: Sequence[Measured[Any]],
    took_ms: Sequence[Sequence[float]],
    colours: dict[str, str],
) -> None:
    """The time that every batch took, a line per run."""
    for record, values in zip(records, took_ms, strict=True):
        axis.plot(
            range(len(values)),
            values,
            color=colours[record.system],
            alpha=0.7,
            linewidth=1.1,
            marker=".",
            markersize=2.5,
        )
    frame(axis, key, [record.run for record in records], "batch", "time of the batch, ms")
    axis.set_ylim(bottom=0)
    axis.xaxis.get_major_locator().set_params(integer=True)


def bars(
    axis: Any,
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[Figure | None]],
    colours: dict[str, str],
) -> None:
    """A bar per group and system: medians of the repeats, whiskers their range; a log scale."""
    width = 0.8 / len(series)
    for number, (system, figures) in enumerate(series.items()):
        placed = [(place, figure) for place, figure in enumerate(figures) if figure is not None]
        axis.bar(
            [place + number * width for place, _ in placed],
            [figure.value for _, figure in placed],
            width,
            yerr=[
                [figure.value - min(figure.repeats) for _, figure in placed],
                [max(figure.repeats) - figure.value for _, figure in placed],
            ],
            color=colours[system],
            label=system,
            error_kw={"linewidth": 0.8},
        )
    axis.set_yscale("log")
    axis.set_xticks([place + width / 2 for place in range(len(groups))], groups, fontsize=8)
    axis.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axis.grid(axis="y", color="0.9", linewidth=0.6)


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
