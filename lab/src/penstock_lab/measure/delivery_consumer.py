"""The other process of a delivery: notes when each record arrives, and reports when all have."""

from __future__ import annotations

import asyncio
import gc
import struct
import sys
from pathlib import Path

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.log.contract import Entry
from penstock.model.ids import BEFORE_ALL
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.processes import READY, first_in_line

NUMBER = struct.Struct(">Q")
WAIT_S = 30.0


class Consuming(msgspec.Struct, frozen=True):
    """Records of a tag to consume, from a host's socket, or from a server's own index of a log."""

    tag: str
    count: int
    socket: str = ""
    log: str = ""
    folder: str = ""


class Got(msgspec.Struct, frozen=True):
    """The time each record arrived, by its number, on the machine's monotonic clock."""

    at_s: dict[int, float]


async def through_socket(job: Consuming, clock: Clock) -> Got:
    got = Got({})
    is_whole = asyncio.Event()

    def receive(entries: list[Entry]) -> None:
        _note(got, entries, clock)
        if len(got.at_s) >= job.count:
            is_whole.set()

    port = await LogClient.open(Path(job.socket))
    await port.subscribe((job.tag,), 0, receive)
    _ready()
    await is_whole.wait()
    return got


def as_server(job: Consuming, clock: Clock) -> Got:
    got = Got({})
    log = open_log(job.log, Path(job.folder))
    try:
        with log.subscribe((job.tag,), BEFORE_ALL) as subscription:
            _ready()
            while len(got.at_s) < job.count:
                entries = subscription.next(WAIT_S)
                if not entries:
                    break
                _note(got, entries, clock)
    finally:
        log.close()
    return got


def _ready() -> None:
    gc.disable()
    first_in_line()
    print(READY, flush=True)


def _note(got: Got, entries: list[Entry], clock: Clock) -> None:
    at_s = clock.monotonic_s()
    for entry in entries:
        (number,) = NUMBER.unpack_from(entry.payload)
        got.at_s[number] = at_s


if __name__ == "__main__":
    consuming = msgspec.json.decode(sys.argv[1], type=Consuming)
    if consuming.socket:
        deliveries = asyncio.run(through_socket(consuming, SYSTEM_CLOCK))
    else:
        deliveries = as_server(consuming, SYSTEM_CLOCK)
    print(msgspec.json.encode(deliveries).decode("ascii"), flush=True)
