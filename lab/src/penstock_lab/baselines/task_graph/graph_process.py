"""The processes of a task graph: its log, its coordinator, its workers, its reader."""

from __future__ import annotations

import random
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock_lab.baselines.task_graph.log_process import LogJob
from penstock_lab.baselines.task_graph.protocols.aligned.barriers import BarriersJob
from penstock_lab.baselines.task_graph.protocols.transaction.coordinator import CoordinatorJob
from penstock_lab.baselines.task_graph.reader import ReaderCount, ReaderJob, Seen
from penstock_lab.baselines.task_graph.registry import Protocol, graph_named
from penstock_lab.baselines.task_graph.sender import SenderJob, Sent
from penstock_lab.baselines.task_graph.worker import WorkerJob, WorkerReport
from penstock_lab.processes import JobChild

PACKAGE = "penstock_lab.baselines.task_graph"
LOOK_EVERY_S = 0.05
_decode_seen = msgspec.msgpack.Decoder(list[Seen]).decode
Address: TypeAlias = str
"""`embedded`, or the address of a JetStream."""


class Plan(msgspec.Struct, frozen=True):
    """A graph, its protocol and its pace. `run` is a name that the log has not seen before."""

    graph: str
    protocol: Protocol
    run: str
    interval_ms: float
    seed: int = 7
    workers: int = 1
    checkpoint_s: float = 10.0


@dataclass
class LogProcess:
    """A log in a process of its own; several graphs may run on it, one after the other."""

    folder: Path
    address: Address
    child: JobChild = field(init=False)

    def __post_init__(self) -> None:
        # The path of a socket has at most 107 bytes, and the folder may be anywhere.
        self.sockets = Path(tempfile.mkdtemp(prefix="penstock-"))
        self.socket = self.sockets / "log"
        self.child = self._start()

    def _start(self) -> JobChild:
        job = LogJob(self.address, str(self.folder / "log"), str(self.socket))
        child = JobChild(f"{PACKAGE}.log_process", job, self.folder / "log.log")
        child.wait_ready()
        return child

    def stop(self) -> None:
        self.child.stop()
        shutil.rmtree(self.sockets, ignore_errors=True)


class GraphRun:
    """A run of a graph over the log of another process. Stop it."""

    def __init__(self, plan: Plan, log: LogProcess, clock: Clock = SYSTEM_CLOCK) -> None:
        self.plan = plan
        self._log = log
        self._clock = clock
        self._folder = log.folder / plan.run
        self._folder.mkdir()
        self._coordinator_socket = log.sockets / plan.run
        self._coordinator: JobChild | None = None
        self._workers: list[JobChild] = []
        self._jobs = self._worker_jobs()
        self._reader = self._child(f"{PACKAGE}.reader", self._reader_job())
        try:
            self._reader.wait_ready()
            self.start()
        except BaseException:
            self.stop()
            raise

    def start(self) -> None:
        """The coordinator, if the protocol has one, and every worker."""
        self._coordinator = self._start_coordinator()
        self._workers = [self._child(f"{PACKAGE}.worker", job) for job in self._jobs]
        for worker in self._workers:
            worker.wait_ready()

    def kill_worker(self, number: int) -> None:
        """SIGKILL, then a new one. With aligned checkpoints the whole graph goes back."""
        if self.plan.protocol == "aligned":
            for worker in self._workers:
                worker.kill()
            if self._coordinator is not None:
                self._coordinator.kill()
            self.start()
            return
        self._workers[number].kill()
        worker = self._child(f"{PACKAGE}.worker", self._jobs[number])
        self._workers[number] = worker
        worker.wait_ready()

    def freeze_worker(self, number: int) -> JobChild:
        """SIGSTOP, then a new one in its place; the old one, which the caller may wake and must
        end. Not with aligned checkpoints, whose attempts begin together."""
        frozen = self._workers[number]
        frozen.freeze()
        worker = self._child(f"{PACKAGE}.worker", self._jobs[number])
        self._workers[number] = worker
        worker.wait_ready()
        return frozen

    def kill_coordinator(self) -> None:
        """SIGKILL, then a new one. Of aligned checkpoints only with the whole graph."""
        assert self._coordinator is not None
        self._coordinator.kill()
        self._coordinator = self._start_coordinator()

    def sender(
        self,
        rate: int,
        seconds: float,
        *,
        seed: int,
        tick_ms: int = 10,
        is_paced: bool = True,
        first: int = 0,
        open_s: float = 0.0,
    ) -> JobChild:
        """A sender with all its rows made; tell it `go`. See `SenderJob`."""
        plan, log = self.plan, str(self._log.socket)
        job = SenderJob(
            *(plan.graph, plan.run, log, rate, seconds, seed, tick_ms, is_paced, first, open_s)
        )
        child = self._child(f"{PACKAGE}.sender", job)
        child.wait_ready()
        return child

    def look(self) -> ReaderCount:
        """The count of what the reader has seen so far."""
        self._reader.tell(b"look")
        return msgspec.json.decode(self._reader.wait_line(), type=ReaderCount)

    def seen(self) -> list[Seen]:
        path = self._folder / "seen"
        self._reader.tell(f"keep {path}".encode())
        self._reader.wait_line()
        return _decode_seen(path.read_bytes())

    def check(self) -> None:
        """Raises if a process has ended by itself."""
        for child in (*self._workers, self._reader, self._log.child, self._coordinator):
            if child is not None and not child.is_running():
                raise child.failed()

    def wait_quiet(self, quiet_s: float, timeout_s: float) -> bool:
        """Wait until nothing new has been seen for so long; False if that did not come about."""
        began_s = self._clock.monotonic_s()
        while self._clock.monotonic_s() - began_s < timeout_s:
            self.check()
            since_s = self._clock.monotonic_s() - max(self.look().last_us / 1e6, began_s)
            if since_s > quiet_s:
                return True
            self._clock.sleep(LOOK_EVERY_S)
        return False

    def stop(self) -> dict[str, int]:
        """Commits of each task since its worker was started. May be called twice."""
        commits: dict[str, int] = {}
        for worker in self._workers:
            report = worker.stop_for_report()
            if report is not None:
                commits.update(msgspec.json.decode(report, type=WorkerReport).commits)
        for child in (self._coordinator, self._reader):
            if child is not None:
                child.stop()
        return commits

    def _worker_jobs(self) -> list[WorkerJob]:
        plan, phases = self.plan, random.Random(self.plan.seed)
        tasks = [
            (task.stage, task.number, phases.random())
            for task in graph_named(plan.graph).tasks(plan.run)
        ]
        return [
            WorkerJob(
                plan.graph,
                plan.run,
                plan.protocol,
                tasks[number :: plan.workers],
                str(self._log.socket),
                plan.interval_ms,
                str(self._coordinator_socket),
                str(self._folder / "store"),
                plan.checkpoint_s,
            )
            for number in range(plan.workers)
        ]

    def _reader_job(self) -> ReaderJob:
        plan = self.plan
        return ReaderJob(plan.graph, plan.run, plan.protocol, str(self._log.socket))

    def _start_coordinator(self) -> JobChild | None:
        plan, socket = self.plan, str(self._coordinator_socket)
        log = str(self._log.socket)
        if plan.protocol == "transaction":
            job: msgspec.Struct = CoordinatorJob(plan.run, log, socket)
            child = self._child(f"{PACKAGE}.protocols.transaction.coordinator", job)
        elif plan.protocol == "aligned":
            job = BarriersJob(plan.graph, plan.run, log, socket, plan.interval_ms)
            child = self._child(f"{PACKAGE}.protocols.aligned.barriers", job)
        else:
            return None
        child.wait_ready()
        return child

    def _child(self, module: str, job: msgspec.Struct) -> JobChild:
        return JobChild(module, job, self._folder / f"{module.rpartition('.')[2]}.log")


def sent_by(child: JobChild) -> Sent:
    """Wait for a sender's end, and what it reports."""
    line = child.wait_line()
    child.stop()
    return msgspec.json.decode(line, type=Sent)
