"""Workers, one process each: how a benchmark starts one, and what it answers.

A worker is a module with a `main` that takes a `Job` and returns a mapping. It prints that as one
JSON line and nothing else; Spark's and the server's own words go to a log file, whose end is quoted
when the worker fails.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from penstock.errors import PenstockError, TryAgain
from penstock.spark.class_archive import FOLDER_VARIABLE
from penstock_lab.processes import end_on_sigterm, output_to, tail

STOP_TIMEOUT_S = 20.0


class Job(msgspec.Struct, frozen=True):
    """The job of a worker, in a folder of its own, which must be there."""

    system: str
    folder: str
    options: dict[str, Any] = {}

    @property
    def path(self) -> Path:
        return Path(self.folder)


def ask(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
    """Run a worker to its end and return its answer; it never outlives this call."""
    log = job.path / "worker.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", module, msgspec.json.encode(job).decode("utf-8")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=out,
            # Systems that are compared start alike: an archive of classes is for sessions of ours.
            env={**os.environ, FOLDER_VARIABLE: ""},
            # Ctrl-C is for the benchmark, which then ends its worker in order.
            start_new_session=True,
        )
    try:
        said, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise TryAgain(
            f"{module} {job.system} had not ended after {timeout_s:g} s; it said: {tail(log)}",
            code="worker_failed",
        ) from None
    finally:
        _end(process)
    if process.returncode:
        raise TryAgain(
            f"{module} {job.system} ended with {process.returncode}; it said: {tail(log)}",
            code="worker_failed",
        )
    return dict(msgspec.json.decode(said))


def ask_apart(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
    """The same in a folder that is made for it and removed afterwards."""
    job.path.mkdir(parents=True)
    answer = ask(module, job, timeout_s)
    shutil.rmtree(job.path)
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    for sent in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(sent)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                continue
    if process.stdout is not None:
        process.stdout.close()


def serve(main: Callable[[Job], dict[str, Any]]) -> None:
    """Run a worker module's job: it comes from the command line, the answer goes out."""
    end_on_sigterm()
    job = msgspec.json.decode(sys.argv[1], type=Job)
    try:
        with output_to(job.path / "worker.log"):
            answer = main(job)
    except PenstockError as error:
        print(f"error: {error.message}", file=sys.stderr)
        sys.exit(1)
    print(msgspec.json.encode(answer).decode("utf-8"), flush=True)
