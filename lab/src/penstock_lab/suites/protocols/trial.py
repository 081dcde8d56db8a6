"""Runs the plan at the level of the log: at every cell the protocols take turns, run by run.

Every repeat has a log of its own. The tasks' phases are drawn from the repeat's number, the same
for all protocols, because what a row waits for at each stage depends on them.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.errors import PenstockError
from penstock.testing.nats_servers import NatsServers
from penstock_lab.baselines.task_graph import graph_process
from penstock_lab.baselines.task_graph.graph_process import GraphRun, LogProcess, sent_by
from penstock_lab.baselines.task_graph.registry import Protocol
from penstock_lab.baselines.task_graph.sources import load_of
from penstock_lab.experiment.jetstream import REPLICAS
from penstock_lab.experiment.record import Noted
from penstock_lab.suites.protocols.answers import check
from penstock_lab.suites.protocols.plan import JETSTREAM, Cell, Plan
from penstock_lab.suites.protocols.record import Measured, measured_of, sightings, told

Tell = Callable[[str], None]
LATE = "void: late generator"


@contextlib.contextmanager
def log_host(log: str, folder: Path) -> Iterator[LogProcess]:
    """A log of its own, and with JetStream three servers of its own under it."""
    with contextlib.ExitStack() as stack:
        address = "embedded"
        if log == JETSTREAM:
            address = stack.enter_context(NatsServers(folder / "nats", REPLICAS)).url
        host = LogProcess(folder, address)
        stack.callback(host.stop)
        yield host


class Trial:
    """One execution of a plan. `runs` grows as it goes and is whole after each."""

    def __init__(self, plan: Plan, folder: Path, tell: Tell) -> None:
        self.plan = plan
        self.runs: list[Measured] = []
        self._folder = folder
        self._tell = tell
        self._again_left = plan.again_max
        self._count = 0

    def execute(self) -> None:
        """Everything; an interrupt leaves no process behind, and `runs` as far as it came."""
        place = Path(tempfile.mkdtemp(prefix="penstock-protocols-", dir=self._folder))
        try:
            for repeat in range(self.plan.repeats):
                folder = place / f"r{repeat}"
                folder.mkdir()
                with log_host(self.plan.log, folder) as host:
                    self._repeat(repeat, host)
                shutil.rmtree(folder)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _repeat(self, repeat: int, host: LogProcess) -> None:
        for number, cell in enumerate(self.plan.cells):
            # Whoever goes first may find the machine cooler: they take turns in that too.
            shift = (repeat + number) % len(self.plan.protocols)
            for protocol in (*self.plan.protocols[shift:], *self.plan.protocols[:shift]):
                self._tell(f"{cell.words}: {protocol}, {repeat + 1} of {self.plan.repeats}")
                made = self._measure(cell, protocol, repeat, host)
                self.runs.append(made)
                if made.run.verdict.kind == LATE and self._again_left:
                    self._again_left -= 1
                    self.runs.append(self._measure(cell, protocol, repeat, host))

    def _measure(self, cell: Cell, protocol: Protocol, repeat: int, host: LogProcess) -> Measured:
        self._count += 1
        noted, commits_per_s = Noted(), 0.0
        try:
            commits_per_s = self._run(cell, protocol, repeat, host, noted)
        except PenstockError as error:
            noted.error = error.message
        return measured_of(self.plan, cell, protocol, repeat, noted, commits_per_s)

    def _run(
        self, cell: Cell, protocol: Protocol, repeat: int, host: LogProcess, noted: Noted
    ) -> float:
        plan, rate = self.plan, self.plan.rates[cell.query]
        seconds = plan.warm_up_s + plan.measure_s
        running = GraphRun(
            graph_process.Plan(
                cell.query, protocol, f"n{self._count}", cell.interval_ms, seed=repeat
            ),
            host,
        )
        try:
            sender = running.sender(rate, seconds, seed=plan.seed, tick_ms=plan.tick_ms)
            sender.tell(b"go")
            sent = sent_by(sender)
            noted.told = told(sent)
            quiet_s = plan.quiet_s + 3 * cell.interval_ms / 1000
            noted.is_drained = running.wait_quiet(quiet_s, plan.drain_s)
            seen = running.seen()
            noted.sightings = sightings(seen)
        finally:
            commits = running.stop()
        load = load_of(cell.query, rate, seconds, plan.seed, plan.tick_ms)
        checked = check(cell.query, load, seen)
        noted.rows_checked, noted.rows_different = checked.rows, checked.different
        noted.differences = checked.differences
        return min(commits.values(), default=0) / seconds
