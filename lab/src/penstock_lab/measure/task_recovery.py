"""Worker: how long Q8's tasks take to come back after 300 s of changes, with checkpoints and not.

The changes are made by the tasks themselves, as many as 300 s of the workload make and committed as
often, only faster than real time: rows are handed to the tasks, which process, append their change
logs and mark. Then nothing is left but the log. A worker is started on it, and the time runs until
every task has appended its first new marker. The last checkpoint is nearly one period old then.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, TryAgain
from penstock.log.contract import Entry
from penstock.model.ids import Instance
from penstock_lab.baselines.task_graph import q8
from penstock_lab.baselines.task_graph.graph import Task
from penstock_lab.baselines.task_graph.graph_process import LogProcess
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.messages import (
    Fence,
    Rows,
    TaskMark,
    decode_task_log,
    encode,
)
from penstock_lab.baselines.task_graph.protocols.marker import MarkerRun
from penstock_lab.baselines.task_graph.sources import micros
from penstock_lab.baselines.task_graph.task import Timing
from penstock_lab.baselines.task_graph.worker import WorkerJob, WorkerReport
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.log_sizes import stream_at
from penstock_lab.processes import JobChild
from penstock_lab.workloads.nexmark import NexmarkOptions
from penstock_lab.workloads.nexmark.auctions import Auctions
from penstock_lab.workloads.nexmark.order import AUCTIONS_PER_EPOCH, EPOCH
from penstock_lab.workloads.nexmark.persons import Persons

SEED = 7
INTERVAL_MS = 10.0
"""Of the worker that comes back, so that the wait for its first commit is not what is measured."""
TIMEOUT_S = 120.0
WARM = "warm_"
"""Before the names of what a worker took that had been started and waited."""


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    host = LogProcess(job.path, stream_at(str(job.options["log"]), "recovery"))
    try:
        made = asyncio.run(make(job, host, clock))
        measurements: dict[str, Any] = {"changes": made}
        starts = ("", WARM) if job.options.get("has_warm") else ("",)
        for number in range(int(job.options["recoveries"])):
            for run in ("with", "without") if number % 2 else ("without", "with"):
                for start in starts:
                    took = asyncio.run(recover(job, host, run, clock, is_warm=start == WARM))
                    for name, value in took.items():
                        measurements.setdefault(f"{start}{run}_{name}", []).append(value)
        return measurements
    finally:
        host.stop()


def steps(rate: int, seconds: int, step_ms: int) -> Iterator[list[Any]]:
    """The rows of each step, persons and auctions as Q8 reads them; bids are not made."""
    options = NexmarkOptions(rate=rate)
    persons, auctions = Persons(options, SEED), Auctions(options, SEED)
    events = rate * step_ms // 1000
    for step in range(seconds * 1000 // step_ms):
        numbers = np.arange(step * events, (step + 1) * events, dtype=np.int64)
        place = numbers % EPOCH
        joined = persons.rows(numbers[place == 0])
        opened = auctions.rows(numbers[(place > 0) & (place <= AUCTIONS_PER_EPOCH)])
        rows: list[Any] = [
            (q8.PERSON, person, name, at_us, 0)
            for person, name, at_us in zip(
                joined.column("id").to_pylist(),
                joined.column("name").to_pylist(),
                micros(joined, "date_time"),
                strict=True,
            )
        ]
        rows += [
            (q8.AUCTION, seller, None, at_us, 0)
            for seller, at_us in zip(
                opened.column("seller").to_pylist(), micros(opened, "date_time"), strict=True
            )
        ]
        yield rows


async def make(job: Job, host: LogProcess, clock: Clock) -> int:
    """Both runs' logs, alike but for the checkpoints; how many rows each has seen."""
    options, graph = job.options, q8.graph()
    port = await LogClient.open(host.socket)
    runs: dict[str, list[MarkerRun]] = {
        run: [
            MarkerRun(graph, task, port, Timing(1.0), clock, uuid.uuid4().hex)
            for task in graph.tasks(run)
            if task.stage == "join"
        ]
        for run in ("with", "without")
    }
    for tasks in runs.values():
        for task in tasks:
            await task.recover()
    step_ms, seconds = int(options["commit_ms"]), int(options["seconds"])
    every = int(options["checkpoint_s"]) * 1000 // step_ms
    count = 0
    for number, rows in enumerate(steps(int(options["rate"]), seconds, step_ms), 1):
        count += len(rows)
        clock_us = max(row[3] for row in rows)
        for tasks in runs.values():
            for place, task in enumerate(tasks):
                mine = [row for row in rows if row[1] % len(tasks) == place]
                task.process_rows(Rows(clock_us, mine), None)
        await asyncio.gather(*(task.commit() for tasks in runs.values() for task in tasks))
        # The end is just before a checkpoint would be due, which is the worst moment to fail at.
        if number % every == 0 and number < seconds * 1000 // step_ms:
            await asyncio.gather(*(task.checkpoint() for task in runs["with"]))
    port.close()
    return count


async def recover(
    job: Job, host: LogProcess, run: str, clock: Clock, *, is_warm: bool = False
) -> dict[str, float]:
    """From the start of a worker to the first new marker of all of its tasks; of a warm one, which
    has been started and waits, from the word that it is to take over."""
    graph = q8.graph()
    tasks = [task for task in graph.tasks(run) if task.stage == "join"]
    port = await LogClient.open(host.socket)
    instances = await asyncio.gather(*(_instance(port, task) for task in tasks))
    marked: dict[str, float] = {}

    def receive(entries: list[Entry]) -> None:
        for entry in entries:
            task_entry = decode_task_log(entry.payload)
            if isinstance(task_entry, TaskMark):
                marked.setdefault(task_entry.producer, clock.monotonic_s())

    after = await port.append((f"before/{run}",), b"")
    await port.subscribe([task.log_tag for task in tasks], after, receive)
    # Something to process, so that there is something to mark.
    for tag in graph.tags(run, "by_person"):
        await port.append((tag,), encode(Rows(0, [(q8.AUCTION, 1, None, 0, 0)])))
    working = WorkerJob(
        "q8",
        run,
        "marker",
        [(task.stage, task.number, 0.0) for task in tasks],
        str(host.socket),
        INTERVAL_MS,
        is_standby=is_warm,
    )
    began_s = clock.monotonic_s()
    child = JobChild("penstock_lab.baselines.task_graph.worker", working, job.path / "worker.log")
    try:
        if is_warm:
            await asyncio.to_thread(child.wait_line, TIMEOUT_S)
            began_s = clock.monotonic_s()
            child.tell(b"go")
        while len(marked) < len(tasks):
            if not child.is_running() or clock.monotonic_s() - began_s > TIMEOUT_S:
                raise child.failed()
            await asyncio.sleep(0.001)
        child.wait_ready()
    finally:
        said = child.stop_for_report()
    port.close()
    if not said:
        raise TryAgain("the worker that came back did not say what it did", code="worker_failed")
    worker_report = msgspec.json.decode(said, type=WorkerReport)
    came = [worker_report.instances[task.name] for task in tasks]
    if came != [old + 1 for old in instances]:
        raise Bug(f"{came} did not take over from {instances}", code="wrong_answer")
    return {
        "ms": (max(marked.values()) - began_s) * 1000,
        "log_ms": worker_report.recovered_ms,
        "replayed": float(sum(worker_report.replayed.values())),
    }


async def _instance(port: LogClient, task: Task) -> Instance:
    last: TaskMark | Fence = decode_task_log(
        (await port.entry(await port.tail(task.log_tag))).payload
    )
    return last.instance


if __name__ == "__main__":
    serve(main)
