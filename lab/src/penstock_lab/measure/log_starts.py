"""Worker: from the start of a process to its first answered append, on a small and a large log.

Cold: the kernel is asked to drop the log's pages before each start, which is as near to a fresh
boot as a process without privileges comes; what a disk's own cache holds, it holds. In JetStream
these are the pages of the index, and its servers go on running.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.log_opening import Opened, Opening
from penstock_lab.measure.log_sizes import GB, stream_at
from penstock_lab.measure.tag_reads import fill
from penstock_lab.processes import JobChild

TAGGED_BYTES = 100


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    sizes = {name: float(job.options[name]) for name in ("small", "large")}
    entry_bytes, tags = int(job.options["bytes"]), int(job.options["tags"])
    for name, gb in sizes.items():
        log = open_log(_where(job, name), job.path / name)
        # Every tag has an entry in the small log too, which is too small for as many large ones.
        fill(log, 2 * tags, TAGGED_BYTES, tags)
        fill(log, int(gb * GB / entry_bytes), entry_bytes, tags)
        log.close()
    times_ms: dict[str, list[float]] = {}
    for number in range(int(job.options["starts"])):
        for name in ("small", "large") if number % 2 else ("large", "small"):
            for state in ("cold", "warm"):
                if state == "cold":
                    drop_pages(job.path / name)
                took_ms, opened = start(job, name, clock)
                times_ms.setdefault(f"{name}_{state}_ms", []).append(took_ms)
                times_ms.setdefault(f"{name}_{state}_open_ms", []).append(opened.open_ms)
    return {**times_ms, "bytes": {name: _bytes(job.path / name) for name in sizes}}


def start(job: Job, name: str, clock: Clock) -> tuple[float, Opened]:
    began_s = clock.monotonic_s()
    opening = Opening(_where(job, name), str(job.path / name))
    child = JobChild("penstock_lab.measure.log_opening", opening, job.path / "opening.log")
    line = child.wait_line()
    took_ms = (clock.monotonic_s() - began_s) * 1000
    child.stop()
    return took_ms, msgspec.json.decode(line, type=Opened)


def _where(job: Job, name: str) -> str:
    return stream_at(str(job.options["log"]), f"starts-{name}")


def drop_pages(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            file = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    serve(main)
