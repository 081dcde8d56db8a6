"""Tables of where batch time goes in the deadlines suite, and of the batches that were late."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock_lab.experiment.figures import ordered
from penstock_lab.experiment.table import bare_table, show_legend
from penstock_lab.suites.deadlines.cells import SPARE_SHARE
from penstock_lab.suites.deadlines.modes import OURS
from penstock_lab.suites.deadlines.profile import BatchTimes, LateBatch, Profile

LATE_SHOWN = 12
"""The latest of the late batches; the file has all of them."""
BATCH_LEGEND = (
    "batches: with rows + without, over all repeats; the others are medians of those with rows, in "
    "ms: cut to visible, then of it planning, jobs that wait for cores, tasks (core-time, summed), "
    "and what is left if tasks had all cores: starting them, release, commit; empty: share of "
    "batch time of batches without rows; overlap: batch time over the time in which a batch was "
    "under way"
)
LATE_LEGEND = (
    "age: of the oldest row at the cut; pred, took: cut to visible, as predicted at the cut and as "
    "it was; queued: jobs waited for cores; empty: the batch before it had no rows; ms"
)


def show_profile(console: Console, profile: Profile) -> None:
    if profile.batches:
        console.print(batch_table(profile.batches))
        show_legend(console, BATCH_LEGEND)
    if profile.with_spare:
        share = f"{len(profile.late)} of {profile.with_spare} batches late"
        after_empty = sum(late.is_after_empty for late in profile.late)
        title = f"{OURS} at {SPARE_SHARE:.0%}: {share}, {after_empty} after one without rows"
        console.print(late_table(title, profile.late), soft_wrap=True)
        show_legend(console, LATE_LEGEND)


def batch_table(batches: Sequence[BatchTimes]) -> Table:
    """A cell's modes below it, so that 80 columns hold all of it."""
    table = bare_table("where batch time goes")
    table.add_column("query and mode", no_wrap=True)
    heads = ("batches", "rows", "took", "plan", "queued", "core", "rest", "empty", "overlap")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for cell in ordered(times.cell for times in batches):
        table.add_row(Text(cell.query, "bold"))
        table.add_row(Text(f" {cell.deadline_s:g} s, {cell.traffic.replace('_', ' ')}", "bold"))
        here = [times for times in batches if times.cell == cell]
        for times in here:
            table.add_row(
                f"  {times.mode}",
                f"{times.with_rows}+{times.without_rows}",
                f"{times.rows:.0f}",
                *(f"{ms:.0f}" for ms in (times.took_ms, times.planning_ms, times.queued_ms)),
                *(f"{ms:.0f}" for ms in (times.core_ms, times.rest_ms)),
                f"{times.without_rows_share:.0%}",
                f"{times.overlap:.2f}",
                end_section=times is here[-1],
            )
    return table


def late_table(title: str, late: Sequence[LateBatch]) -> Table:
    """The latest of them, and how many are left out."""
    table = bare_table(title)
    table.add_column("query", no_wrap=True)
    for head in ("deadline", "batch", "rows", "age", "pred", "took", "queued", "empty", "late"):
        table.add_column(head, justify="right", no_wrap=True)
    latest = sorted(late, key=lambda batch: batch.late_ms, reverse=True)
    for batch in latest[:LATE_SHOWN]:
        table.add_row(
            batch.query,
            f"{batch.deadline_s:g} s",
            *(str(batch.batch), str(batch.rows), f"{batch.age_ms:.0f}"),
            "-" if batch.predicted_ms is None else f"{batch.predicted_ms:.0f}",
            *(f"{batch.took_ms:.0f}", f"{batch.queued_ms:.0f}"),
            "yes" if batch.is_after_empty else "no",
            f"{batch.late_ms:.0f}",
        )
    if len(latest) > LATE_SHOWN:
        table.add_row(f"and {len(latest) - LATE_SHOWN} more")
    return table
