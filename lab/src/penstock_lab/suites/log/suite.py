"""The suite from its plan to its tables, its result file and its picture.

Backends take turns within a repeat, each in processes and folders of its own; JetStream runs on
three servers, made for the repeat.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from penstock.testing.nats_servers import NatsServers
from penstock_lab.experiment import jetstream
from penstock_lab.experiment.jetstream import REPLICAS
from penstock_lab.experiment.outlet import Outlet
from penstock_lab.experiment.report import Result, result
from penstock_lab.experiment.worker import Job, ask
from penstock_lab.suites.log.figures import figures
from penstock_lab.suites.log.plan import EMBEDDED, JETSTREAM, Plan, stream_at
from penstock_lab.suites.log.plot import draw
from penstock_lab.suites.log.tables import show

SUITE = "log"
RUN_TIMEOUT_S = 1_200.0
Tell = Callable[[str], None]


class Trial:
    """One execution of a plan. `runs` grows as it goes and is whole after each."""

    def __init__(self, plan: Plan, folder: Path, tell: Tell) -> None:
        self.plan = plan
        self.runs: list[dict[str, Any]] = []
        self._folder = folder
        self._tell = tell
        self._count = 0

    def execute(self) -> None:
        """Everything; an interrupt leaves no process behind, and `runs` as far as it came."""
        place = Path(tempfile.mkdtemp(prefix="penstock-log-", dir=self._folder))
        try:
            for repeat in range(self.plan.repeats):
                turns = self.plan.backends if repeat % 2 else self.plan.backends[::-1]
                for backend in turns:
                    self._backend(place, backend, repeat)
            for backend in self.plan.backends:
                self._once(place, backend)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _backend(self, place: Path, backend: str, repeat: int) -> None:
        plan, of = self.plan, f"{repeat + 1} of {self.plan.repeats}"
        with _log(backend, place / "nats") as log:
            options: dict[str, Any] = {"log": stream_at(log, "appends")}
            self._ask(
                place,
                f"appends on {backend}, {of}",
                "appends",
                {**options, "seconds": plan.append_s},
                {"backend": backend, "repeat": repeat},
            )
            options = {"log": stream_at(log, "delivered")}
            self._ask(
                place,
                f"deliveries on {backend}, {of}",
                "deliver",
                {
                    **options,
                    "seconds": plan.deliver_s,
                    "per_s": plan.deliver_per_s,
                    "bytes": plan.deliver_bytes,
                },
                {"backend": backend, "repeat": repeat},
            )

    def _once(self, place: Path, backend: str) -> None:
        """What is compared within one run, between two logs or two ways to read one."""
        with _log(backend, place / "nats") as log:
            for what, worker, options in self._compared(backend):
                self._ask(
                    place,
                    f"{what} on {backend}",
                    worker,
                    {"log": log, **options},
                    {"backend": backend},
                )

    def _compared(self, backend: str) -> list[tuple[str, str, dict[str, Any]]]:
        plan = self.plan
        small, large = plan.starts_gb(backend)
        return [
            (
                "reading by tag",
                "tags",
                {
                    "entries": plan.tag_entries,
                    "bytes": plan.tag_entry_bytes,
                    "few": plan.tags_few,
                    "many": plan.tags_many,
                    "reads": plan.tag_reads,
                },
            ),
            (
                "starting on a small and a large log",
                "starts",
                {
                    "small": small,
                    "large": large,
                    "bytes": plan.start_entry_bytes,
                    "tags": plan.start_tags,
                    "starts": plan.starts,
                },
            ),
            (
                "recovering with and without checkpoints",
                "recovery",
                {
                    "rate": plan.recover_rate,
                    "seconds": plan.recover_s,
                    "commit_ms": plan.recover_commit_ms,
                    "checkpoint_s": plan.recover_checkpoint_s,
                    "recoveries": plan.recoveries,
                },
            ),
        ]

    def _ask(
        self,
        place: Path,
        what: str,
        worker: str,
        options: dict[str, Any],
        about: dict[str, Any] | None = None,
    ) -> None:
        self._tell(what)
        self._count += 1
        folder = place / f"w{self._count}"
        folder.mkdir()
        answer = ask(
            f"penstock_lab.suites.log.{worker}", Job(worker, str(folder), options), RUN_TIMEOUT_S
        )
        self.runs.append({"measured": worker, **(about or {}), **answer})
        shutil.rmtree(folder)


@contextlib.contextmanager
def _log(backend: str, folder: Path) -> Iterator[str]:
    """The address of a log of that kind, with servers of its own if it needs them."""
    if backend == EMBEDDED:
        yield EMBEDDED
        return
    with NatsServers(folder, REPLICAS) as servers:
        yield servers.url
    shutil.rmtree(folder)


def run(
    plan: Plan,
    folder: Path,
    tell: Tell,
    outlet: Outlet,
) -> None:
    """Run, show, write."""
    if JETSTREAM in plan.backends:
        jetstream.require_servers("--backend embedded")
    outlet.require()
    trial = Trial(plan, folder, tell)
    with outlet.reporting(partial(report, trial)):
        trial.execute()


def report(trial: Trial, outlet: Outlet) -> Result:
    found = figures(trial.plan, trial.runs)
    whole = result(SUITE, trial.plan.settings(), trial.runs, found)
    outlet.put(
        whole,
        lambda console: show(console, trial.plan, found),
        lambda path: draw(trial.plan, found, path),
        is_empty=not found,
    )
    return whole
