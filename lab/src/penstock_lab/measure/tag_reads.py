"""Worker: how fast one tag is read when the log has few tags, and when it has many.

Both logs have the same entries at the same places; in both the tag that is read has every tenth of
them, and the rest are spread over the other tags. So all that differs is how many tags there are.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future
from typing import Any

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug
from penstock.log.backends.local import LocalLog
from penstock.log.operations import AppendRecord
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.log_sizes import stream_at

READ = "read"
EVERY = 10
UNDER_WAY = 512


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    options = job.options
    entries, size = int(options["entries"]), int(options["bytes"])
    logs = {}
    for name in ("few", "many"):
        logs[name] = open_log(stream_at(str(options["log"]), f"tags-{name}"), job.path / name)
        fill(logs[name], entries, size, int(options[name]))
    speeds_mb_per_s: dict[str, list[float]] = {"few": [], "many": []}
    for number in range(int(options["reads"]) + 1):
        for name in ("few", "many") if number % 2 else ("many", "few"):
            speed = read(logs[name], entries // EVERY, clock)
            # The first reading of each only brings it into memory.
            if number:
                speeds_mb_per_s[name].append(speed)
    for log in logs.values():
        log.close()
    return {"few_mb_per_s": speeds_mb_per_s["few"], "many_mb_per_s": speeds_mb_per_s["many"]}


def fill(log: LocalLog, entries: int, size: int, tags: int) -> None:
    noise = os.urandom(size)
    under_way: deque[Future[Any]] = deque()
    others = 0
    for number in range(entries):
        if number % EVERY == 0:
            tag = READ
        else:
            tag = f"other/{others % (tags - 1)}"
            others += 1
        under_way.append(log.submit(AppendRecord((tag,), noise)))
        if len(under_way) >= UNDER_WAY:
            under_way.popleft().result()
    for append in under_way:
        append.result()


def read(log: LocalLog, expected: int, clock: Clock) -> float:
    """Megabytes per second of the tag's entries, verified and copied."""
    count = size = 0
    began_s = clock.monotonic_s()
    with log.reading() as view:
        for lsn in view.tagged(READ, 0):
            entry = view.entry(lsn)
            if entry is not None:
                count += 1
                size += len(entry.payload)
    took_s = clock.monotonic_s() - began_s
    if count != expected:
        raise Bug(f"{count} entries were read by tag, and {expected} put", code="wrong_answer")
    return size / 1e6 / took_s


if __name__ == "__main__":
    serve(main)
