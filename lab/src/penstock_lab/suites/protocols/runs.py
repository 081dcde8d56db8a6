"""Runs of the protocols suite: at every cell the protocols take turns, on a log made for a repeat.

The tasks' phases are drawn from the repeat's number, the same for all protocols, because what a row
waits for at each stage depends on them.
"""

from __future__ import annotations

import itertools
import shutil
from functools import partial
from pathlib import Path
from typing import Any

from penstock_lab.baselines.task_graph import graph_process
from penstock_lab.baselines.task_graph.graph_process import LogProcess
from penstock_lab.baselines.task_graph.registry import Protocol
from penstock_lab.experiment.record import Measured, in_file, run_of
from penstock_lab.experiment.turns import Retries, Steps, Tell, rotated, with_retry
from penstock_lab.measure.task_graph_runs import log_host, measure
from penstock_lab.suites.protocols.cells import LEVEL, Cell, Plan


class Record(Measured[Cell], frozen=True):
    """A run of a protocol at a cell."""

    commits_per_s: float = 0.0
    """Of the task that committed least often; the interval asks for 1,000 over it."""


def for_file(record: Record) -> dict[str, Any]:
    return {
        "level": LEVEL,
        **in_file(record.run),
        "interval_ms": record.cell.interval_ms,
        "commits_per_s": record.commits_per_s,
    }


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    retries, names = Retries(plan.again_max), (f"n{number}" for number in itertools.count(1))

    def measured(cell: Cell, protocol: Protocol, repeat: int, host: LogProcess) -> Record:
        graph = graph_process.Plan(cell.query, protocol, next(names), cell.interval_ms, seed=repeat)
        conditions = plan.conditions(cell.query)
        noted, commits_per_s = measure(graph, conditions, host, plan.quiet_s, plan.fill)
        run = run_of(conditions, protocol, repeat, noted)
        return Record(cell, run, commits_per_s=round(commits_per_s, 1))

    for repeat in range(plan.repeats):
        place = folder / f"r{repeat}"
        with log_host(plan.log, place) as host:
            for number, cell in enumerate(plan.cells):
                # Whoever goes first may find the machine cooler: they take turns in that too.
                for protocol in rotated(plan.protocols, repeat + number):
                    words = f"{cell.words}: {protocol}, {repeat + 1} of {plan.repeats}"
                    measuring = partial(measured, cell, protocol, repeat, host)
                    yield from with_retry(words, measuring, measuring, retries)
        shutil.rmtree(place)
