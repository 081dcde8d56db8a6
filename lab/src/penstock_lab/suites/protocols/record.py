"""What is kept of one run of one protocol, made from what the reader and the sender noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from penstock_lab.baselines.task_graph.reader import Seen
from penstock_lab.baselines.task_graph.sender import Sent
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.record import Frame, Noted, Run, in_file, run_of
from penstock_lab.experiment.verdicts import Limits
from penstock_lab.percentiles import percentile
from penstock_lab.suites.protocols.plan import Cell, Plan
from penstock_lab.workloads import sending
from penstock_lab.workloads.send import Told


class Measured(msgspec.Struct, frozen=True):
    """One run of one protocol at one cell."""

    cell: Cell
    protocol: str
    run: Run
    commits_per_s: float = 0.0
    """Of the task that committed least often; the interval asks for 1,000 over it."""

    @property
    def repeat(self) -> int:
        return self.run.repeat

    @property
    def is_counted(self) -> bool:
        return self.run.is_counted


def sightings(seen: Sequence[Seen]) -> list[Sighting]:
    """The last column of every answer is its send time."""
    return [
        Sighting(one.at_us, np.array([row[-1] for row in one.rows], np.int64))
        for one in seen
        if one.rows
    ]


def told(sent: Sent) -> Told:
    """The sender's report in the words of the other suites; times are the monotonic clock's."""
    summed = sending.Sent(
        rows=sent.rows,
        ticks=len(sent.lag_ms),
        seconds=round((sent.ended_us - sent.started_us) / 1e6, 3),
        duplicates=0,
        lag_ms_p50=round(percentile(sent.lag_ms, 50) or 0.0, 2),
        lag_ms_p99=round(percentile(sent.lag_ms, 99) or 0.0, 2),
        lag_ms_max=round(percentile(sent.lag_ms, 100) or 0.0, 2),
        append_ms_p50=round(sent.append_ms_p50, 2),
        append_ms_p99=round(sent.append_ms_p99, 2),
        priority_raised=sent.priority_raised,
    )
    return Told(summed, sent.started_us // 1000, sent.lag_ms)


def measured_of(
    plan: Plan, cell: Cell, protocol: str, repeat: int, noted: Noted, commits_per_s: float
) -> Measured:
    frame = Frame(plan.warm_up_s, plan.measure_s, 0, 1.0, Limits(plan.stall_s * 1000))
    run = run_of(cell.query, protocol, repeat, plan.rates[cell.query], noted, frame)
    return Measured(cell, protocol, run, round(commits_per_s, 1))


def for_file(one: Measured) -> dict[str, Any]:
    return {
        **in_file(one.run),
        "interval_ms": one.cell.interval_ms,
        "commits_per_s": one.commits_per_s,
    }
