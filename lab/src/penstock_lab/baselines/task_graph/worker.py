"""Tasks in a process: `python -m …task_graph.worker JSON`.

Says that it is ready when every task has recovered, and what that took; ends when a newer instance
has taken one of them over. Killed, it is started again with the same JSON, or one that stands by is
told to take over.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import uuid
from pathlib import Path

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.protocols.aligned.store import CheckpointStore
from penstock_lab.baselines.task_graph.protocols.aligned.task import AlignedRun
from penstock_lab.baselines.task_graph.protocols.coordinator_client import CoordinatorClient
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.protocols.transaction.task import TransactionRun
from penstock_lab.baselines.task_graph.protocols.unsafe import UnsafeRun
from penstock_lab.baselines.task_graph.registry import Protocol, graph_named
from penstock_lab.baselines.task_graph.task import TaskRun, Timing
from penstock_lab.processes import READY, ended_with_parent, first_of

STANDBY = "standby"
"""Said by a worker that waits to take over."""


class WorkerReport(msgspec.Struct, frozen=True):
    """The report of a worker at its end, by task; `recovered_ms` is until all of them were back."""

    commits: dict[str, int]
    instances: dict[str, int]
    replayed: dict[str, int]
    recovered_ms: float


class WorkerJob(msgspec.Struct, frozen=True):
    """The tasks of a worker. `tasks` are by stage and number, each with its phase."""

    graph: str
    run: str
    protocol: Protocol
    tasks: list[tuple[str, int, float]]
    log: str
    interval_ms: float
    coordinator: str = ""
    store: str = ""
    checkpoint_s: float = 0.0
    is_standby: bool = False
    """Whether to wait, started and connected, for a line before the tasks are taken over."""


def runs_of(job: WorkerJob, log: LogClient, clock: Clock = SYSTEM_CLOCK) -> list[TaskRun]:
    graph = graph_named(job.graph)
    coordinator = CoordinatorClient(Path(job.coordinator))
    made: list[TaskRun] = []
    for stage, number, phase in job.tasks:
        task = Task(job.run, stage, number)
        timing = Timing(job.interval_ms / 1000, phase, job.checkpoint_s)
        match job.protocol:
            case "marker":
                made.append(MarkerRun(graph, task, log, timing, clock, uuid.uuid4().hex))
            case "transaction":
                made.append(TransactionRun(graph, task, log, timing, clock, coordinator))
            case "aligned":
                store = CheckpointStore(Path(job.store))
                made.append(AlignedRun(graph, task, log, timing, clock, coordinator, store))
            case "unsafe":
                made.append(UnsafeRun(graph, task, log, timing, clock))
    return made


async def work(job: WorkerJob) -> None:
    """Work until SIGTERM, a failure, or the end of the log or of the process that began this."""
    began_s = SYSTEM_CLOCK.monotonic_s()
    log = await LogClient.open(Path(job.log))
    runs = runs_of(job, log)
    if job.is_standby:
        print(STANDBY, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        began_s = SYSTEM_CLOCK.monotonic_s()
    await asyncio.gather(*(run.recover() for run in runs))
    recovered_ms = (SYSTEM_CLOCK.monotonic_s() - began_s) * 1000
    gc.freeze()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    print(READY, flush=True)
    tasks = [asyncio.ensure_future(run.run()) for run in runs]
    await first_of(stop.wait(), ended_with_parent(), log.lost, *tasks)
    log.check()
    for task in tasks:
        if task.done():
            task.result()
    report = WorkerReport(
        {run.task.name: run.commits for run in runs},
        {run.task.name: run.instance for run in runs},
        {run.task.name: run.changes_replayed for run in runs},
        recovered_ms,
    )
    print(msgspec.json.encode(report).decode("ascii"), flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(work(msgspec.json.decode(sys.argv[1], type=WorkerJob)))
    except PenstockError as error:
        print(f"error: {error.message}", file=sys.stderr)
        sys.exit(1)
