"""Worker: durable appends of records from one and from many writers, one size after the other.

A writer is a thread that appends, waits until the answer says durable, and appends again: a closed
loop, so the rate is what so many waiting writers get, and the time is one append's.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug
from penstock.log.backends.local import LocalLog
from penstock.log.operations import AppendRecord
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.log_sizes import SIZES, WRITERS
from penstock_lab.percentiles import percentile

WARM_UP_SHARE = 0.2


def main(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    log = open_log(str(job.options["log"]), job.path / "index")
    measurements: dict[str, Any] = {}
    try:
        for name, size in SIZES.items():
            for writers in WRITERS:
                tag = f"append/{name}/{writers}"
                measured = measure(log, tag, size, writers, float(job.options["seconds"]), clock)
                measurements[f"{name}.w{writers}"] = measured
    finally:
        log.close()
    return measurements


def measure(
    log: LocalLog, tag: str, size: int, writers: int, seconds: float, clock: Clock
) -> dict[str, float]:
    """Refuses an answer that the log does not have in the end."""
    warm_s = clock.monotonic_s() + WARM_UP_SHARE * seconds
    end_s = warm_s + seconds
    took_ms: list[list[float]] = [[] for _ in range(writers)]
    appended = [0] * writers

    def write(number: int) -> None:
        payload = os.urandom(size)
        mine = AppendRecord((tag, f"{tag}/{number}"), payload)
        while True:
            began_s = clock.monotonic_s()
            if began_s > end_s:
                return
            log.run(mine)
            appended[number] += 1
            if began_s > warm_s:
                took_ms[number].append((clock.monotonic_s() - began_s) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with log.reading() as view:
        records_in_log = sum(1 for _ in view.tagged(tag, 0))
    if records_in_log != sum(appended):
        raise Bug(
            f"{records_in_log} records are there after {sum(appended)} appends", code="wrong_answer"
        )
    every = [append_ms for mine in took_ms for append_ms in mine]
    return {
        "append_per_s": len(every) / seconds,
        "append_ms_p50": percentile(every, 50) or 0.0,
        "append_ms_p99": percentile(every, 99) or 0.0,
        "appends": len(every),
    }


if __name__ == "__main__":
    serve(main)
