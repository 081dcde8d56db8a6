"""A process that opens a log, appends once, and says how long its own part took."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from penstock.clock import SYSTEM_CLOCK
from penstock.log.operations import AppendRecord
from penstock_lab.baselines.task_graph.logs import open_log


class Opening(msgspec.Struct, frozen=True):
    log: str
    folder: str


class Opened(msgspec.Struct, frozen=True):
    """From before the log was opened to the answer of the append; the interpreter's start is not
    in it."""

    open_ms: float


if __name__ == "__main__":
    opening = msgspec.json.decode(sys.argv[1], type=Opening)
    began_s = SYSTEM_CLOCK.monotonic_s()
    log = open_log(opening.log, Path(opening.folder))
    log.run(AppendRecord(("started",), b"x"))
    opened = Opened((SYSTEM_CLOCK.monotonic_s() - began_s) * 1000)
    print(msgspec.json.encode(opened).decode("ascii"), flush=True)
    log.close()
