"""Runs of the log suite: workers of their own measure one thing each, backends take turns.

JetStream runs on three servers, made for the repeat.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from penstock.testing.nats_servers import NatsServers
from penstock_lab.experiment import jetstream, worker
from penstock_lab.experiment.turns import Step, Steps, Tell, rotated
from penstock_lab.experiment.worker import Job
from penstock_lab.measure.log_sizes import EMBEDDED
from penstock_lab.suites.log.cells import Plan

MEASURE = "penstock_lab.measure"
WORKERS = {
    "appends": "log_appends",
    "gateway": "gateway_appends",
    "crowd": "gateway_crowd",
    "deliver": "log_deliveries",
    "tags": "tag_reads",
    "starts": "log_starts",
    "recovery": "task_recovery",
}
RUN_TIMEOUT_S = 1_200.0
Record: TypeAlias = dict[str, Any]


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    numbers = itertools.count(1)

    def step(words: str, kind: str, options: dict[str, Any], about: Record) -> Step[Record]:
        job = Job(kind, str(folder / f"w{next(numbers)}"), options)
        return Step(words, partial(measured, job, about))

    for repeat in range(plan.repeats):
        for backend in rotated(plan.backends[::-1], repeat):
            about = {"backend": backend, "repeat": repeat}
            with log_at(backend, folder / "nats") as log:
                for words, kind, options in plan.repeated(log):
                    words = f"{words} on {backend}, {repeat + 1} of {plan.repeats}"
                    yield step(words, kind, options, about)
    for backend in plan.backends:
        with log_at(backend, folder / "nats") as log:
            for words, kind, options in plan.once(backend):
                about = {"backend": backend}
                yield step(f"{words} on {backend}", kind, {"log": log, **options}, about)


def measured(job: Job, about: Record) -> Record:
    answer = worker.ask_apart(f"{MEASURE}.{WORKERS[job.system]}", job, RUN_TIMEOUT_S)
    return {"measured": job.system, **about, **answer}


@contextlib.contextmanager
def log_at(backend: str, folder: Path) -> Iterator[str]:
    """The address of a log of that kind, with servers of its own if it needs them."""
    if backend == EMBEDDED:
        yield EMBEDDED
        return
    with NatsServers(folder, jetstream.REPLICAS) as servers:
        yield servers.url
    shutil.rmtree(folder)
