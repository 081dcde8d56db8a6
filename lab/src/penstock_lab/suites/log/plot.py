"""Draws appends per second and their time, a group of bars per size, a colour per backend."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from penstock_lab.experiment.plot import COLOURS, PIXELS_PER_INCH
from penstock_lab.experiment.report import Figure
from penstock_lab.suites.log.plan import SIZES, WRITERS, Plan

INCHES = (11.0, 3.6)
PANELS = (("append_per_s", "appends per second"), ("append_ms_p99", "p99 of one append, ms"))


def draw(plan: Plan, figures: Sequence[Figure], path: Path) -> None:
    """Bars are medians of the repeats, whiskers their range; values on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    by_name = {one.name: one for one in figures}
    groups = [f"{size}.w{writers}" for writers in WRITERS for size in SIZES]
    figure, axes = pyplot.subplots(1, len(PANELS), figsize=INCHES)
    width = 0.8 / len(plan.backends)
    for axis, (key, words) in zip(axes, PANELS, strict=True):
        for number, backend in enumerate(plan.backends):
            there = [
                (place, by_name[f"{backend}.{group}.{key}"])
                for place, group in enumerate(groups)
                if f"{backend}.{group}.{key}" in by_name
            ]
            values = [one.value for _, one in there]
            low = [one.value - min(one.repeats) for _, one in there]
            high = [max(one.repeats) - one.value for _, one in there]
            axis.bar(
                [place + number * width for place, _ in there],
                values,
                width,
                yerr=[low, high],
                color=COLOURS[number],
                label=backend,
                error_kw={"linewidth": 0.8},
            )
        axis.set_yscale("log")
        axis.set_xticks([place + width / 2 for place in range(len(groups))], groups, fontsize=8)
        axis.set_title(words, loc="left", fontsize=10, fontweight="bold")
        axis.grid(axis="y", color="0.9", linewidth=0.6)
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=PIXELS_PER_INCH)
    pyplot.close(figure)
