"""Runs of the columnar suite: the input is written once, planning learns from a long run, then each
repeat has a session.

All of them share one folder of the log, and with it what the server has learned of this machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock_lab.experiment import worker
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.experiment.worker import Job
from penstock_lab.suites.columnar.cells import Plan

WORKER = "penstock_lab.measure.window_batches"
FILL_TIMEOUT_S = 600.0
RUN_TIMEOUT_S = 1_800.0
Record: TypeAlias = dict[str, Any]


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    """Needs about 2 GB in the folder."""
    options = {
        "cases": msgspec.to_builtins(plan.cases),
        "round_trips": msgspec.to_builtins(plan.round_trips),
        "learning": msgspec.to_builtins(plan.learning),
        "rate": plan.rate,
        "commit_rows": plan.commit_rows,
        "data": str(folder / "data"),
        "paths": plan.paths,
    }
    fill = Job("fill", str(folder / "fill"), options)
    yield step("writing the input", 0, fill, FILL_TIMEOUT_S)
    if plan.learning is not None:
        words = f"{plan.learning_batches} batches of which planning learns"
        yield step(words, 0, Job("learn", str(folder / "learn"), options), RUN_TIMEOUT_S)
    for repeat in range(plan.repeats):
        turn = f"{repeat + 1} of {plan.repeats}"
        words = f"{len(plan.cases)} cases on {len(plan.paths)} paths, {turn}"
        job = Job("paths", str(folder / f"repeat{repeat}"), {**options, "repeat": repeat})
        yield step(words, repeat, job, RUN_TIMEOUT_S)


def step(words: str, repeat: int, job: Job, timeout_s: float) -> Step[Record]:
    def measure() -> Record:
        answer = worker.ask_apart(WORKER, job, timeout_s)
        return {"system": job.system, "repeat": repeat, **answer}

    return Step(words, measure)
