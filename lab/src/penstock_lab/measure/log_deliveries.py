"""Worker: from an append to its arrival in another process, at a fixed rate.

With JetStream both processes are servers of their own on it; with the embedded log, which one
process holds, both reach it through that process's socket. Latency counts from the intended time
of the append, so that a stall is seen by all appends it delays.
"""

from __future__ import annotations

import asyncio
import gc
import os
import struct
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug
from penstock.log.operations import AppendRecord
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.graph_process import LogProcess
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.delivery_consumer import Consuming, Got
from penstock_lab.measure.log_sizes import EMBEDDED
from penstock_lab.percentiles import percentile
from penstock_lab.processes import JobChild, first_in_line

TAG = "delivered"
LEAD_S = 0.2
WARM_UP = 50
NUMBER = struct.Struct(">Q")


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    count = int(float(job.options["seconds"]) * int(job.options["per_s"])) + WARM_UP
    where = str(job.options["log"])
    if where == EMBEDDED:
        due_s, got = _through_host(job, count, clock)
    else:
        due_s, got = _between_servers(job, where, count, clock)
    if sorted(got.at_s) != list(range(count)):
        raise Bug(f"{len(got.at_s)} of {count} records arrived, or others", code="wrong_answer")
    took_ms = [(got.at_s[number] - due_s[number]) * 1000 for number in range(WARM_UP, count)]
    return {
        "deliver_ms_p50": percentile(took_ms, 50),
        "deliver_ms_p99": percentile(took_ms, 99),
        "delivered": len(took_ms),
    }


def _payload(number: int, size: int, noise: bytes) -> bytes:
    return NUMBER.pack(number) + noise[: size - NUMBER.size]


def _due(clock: Clock, count: int, per_s: int) -> list[float]:
    began_s = clock.monotonic_s() + LEAD_S
    return [began_s + number / per_s for number in range(count)]


def _through_host(job: Job, count: int, clock: Clock) -> tuple[list[float], Got]:
    host = LogProcess(job.path, EMBEDDED)
    try:
        consumer = _consumer(job, Consuming(TAG, count, socket=str(host.socket)))
        due_s = asyncio.run(_append_all(host.socket, job, count, clock))
        return due_s, _got(consumer)
    finally:
        host.stop()


async def _append_all(socket: Path, job: Job, count: int, clock: Clock) -> list[float]:
    port = await LogClient.open(socket)
    noise, size = os.urandom(int(job.options["bytes"])), int(job.options["bytes"])
    gc.disable()
    first_in_line()
    due_s = _due(clock, count, int(job.options["per_s"]))
    under_way: list[asyncio.Future[Lsn]] = []
    for number, due in enumerate(due_s):
        await asyncio.sleep(max(0.0, due - clock.monotonic_s()))
        under_way.append(port.append((TAG,), _payload(number, size, noise)))
    await asyncio.gather(*under_way)
    return due_s


def _between_servers(job: Job, where: str, count: int, clock: Clock) -> tuple[list[float], Got]:
    log = open_log(where, job.path / "index")
    try:
        index = str(job.path / "other")
        consumer = _consumer(job, Consuming(TAG, count, log=where, folder=index))
        noise, size = os.urandom(int(job.options["bytes"])), int(job.options["bytes"])
        gc.disable()
        first_in_line()
        due_s = _due(clock, count, int(job.options["per_s"]))
        under_way = []
        for number, due in enumerate(due_s):
            clock.sleep(max(0.0, due - clock.monotonic_s()))
            under_way.append(log.submit(AppendRecord((TAG,), _payload(number, size, noise))))
        for append in under_way:
            append.result()
        return due_s, _got(consumer)
    finally:
        log.close()


def _consumer(job: Job, consuming: Consuming) -> JobChild:
    child = JobChild("penstock_lab.measure.delivery_consumer", consuming, job.path / "consumer.log")
    child.wait_ready()
    return child


def _got(consumer: JobChild) -> Got:
    line = consumer.wait_line()
    consumer.stop()
    return msgspec.json.decode(line, type=Got)


if __name__ == "__main__":
    serve(main)
