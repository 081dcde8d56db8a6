"""The processes around a run: Spark's, and the sender's. Neither outlives its `stop`."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.client.address import CA_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, Address
from penstock.errors import TryAgain
from penstock_lab.experiment.driver import Answer, Command, Setup
from penstock_lab.processes import tail
from penstock_lab.workloads.load import Load
from penstock_lab.workloads.send import READY, Told

READY_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 15.0
ENDING = (None, signal.SIGTERM, signal.SIGKILL)
"""None: its input has ended, which it takes as a request."""


class Child:
    """A process that is told things and answers, a line each. `stop` may be called twice."""

    def __init__(self, what: str, command: Sequence[str], log: Path, env: dict[str, str]) -> None:
        self._what = what
        self._log = log
        self._lines: queue.Queue[bytes] = queue.Queue()
        with log.open("ab") as errors:
            # A session of its own: Ctrl-C is for the benchmark, which then ends its children.
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env={**os.environ, **env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # Whoever waits for the answer learns that the process is gone.
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def wait_line(self, timeout_s: float) -> bytes:
        """Its next line; TryAgain if it ended first or took longer."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise Late(
                f"{self._what} did not answer in {timeout_s:g} s", code="no_answer"
            ) from None
        if not line:
            code = self._process.wait()
            raise TryAgain(
                f"{self._what} ended with {code}; it said: {tail(self._log) or 'nothing'}",
                code="worker_failed",
            )
        return line

    def stop(self, *, at_once: bool = False) -> None:
        """End it, and whatever it started; `at_once` does not wait for what it is at."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        for sent in (signal.SIGTERM, signal.SIGKILL) if at_once else ENDING:
            if sent is not None and self._process.poll() is None:
                # The group holds Spark's JVM too, which the process may be waiting for.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
                break
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reader.join(STOP_TIMEOUT_S)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def kill(self) -> None:
        """End it without asking, because it does not answer."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.stop()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip(b"\n"))
        self._lines.put(b"")


class Late(TryAgain):
    """A child that is there and does not answer."""


class Engine(Child):
    """A Spark process that takes commands; `module` is what it runs."""

    def __init__(
        self, setup: Setup, address: Address | None, module: str = "penstock_lab.experiment.driver"
    ) -> None:
        command = (module, msgspec.json.encode(setup).decode("utf-8"))
        log = Path(setup.log)
        # State and shuffles are on the disk that is measured, and go when the run's folder does.
        env = {**_told(address), "SPARK_LOCAL_DIRS": str(log.parent / "spark")}
        super().__init__(f"Spark ({setup.system})", command, log, env)

    def wait_ready(self) -> None:
        self.wait_answer(READY_TIMEOUT_S)

    def ask(self, command: Command, timeout_s: float) -> dict[str, Any]:
        """What it answers; TryAgain with its sentence if it could not."""
        self.begin(command)
        return self.wait_answer(timeout_s)

    def begin(self, command: Command) -> None:
        """Give the command; `wait_answer` must follow, again after it was Late."""
        self.tell(msgspec.json.encode(command))

    def wait_answer(self, timeout_s: float) -> dict[str, Any]:
        answered = msgspec.json.decode(self.wait_line(timeout_s), type=Answer)
        if answered.error is not None:
            raise TryAgain(answered.error, code="query_failed")
        return answered.said


class Sender(Child):
    """A sender with everything made, waiting to begin."""

    def __init__(
        self, load: Load, log: Path, producer: str, address: Address | None, into: Path | None
    ) -> None:
        command = ["penstock_lab.workloads.send", "--wait", "--producer", producer]
        command += ["--load", msgspec.json.encode(load).decode("utf-8")]
        if into is not None:
            command += ["--into", str(into)]
        super().__init__("the sender", command, log, _told(address))

    def wait_ready(self) -> None:
        line = self.wait_line(READY_TIMEOUT_S)
        if line != READY.encode("ascii"):
            raise TryAgain(f"the sender said {line!r}, not {READY!r}", code="worker_failed")

    def go(self) -> None:
        self.tell(b"go")

    def stop(self, *, at_once: bool = True) -> None:
        # While it sends it does not look at its input.
        super().stop(at_once=at_once)

    def wait_report(self, timeout_s: float) -> Told:
        return msgspec.json.decode(self.wait_line(timeout_s), type=Told)


def _told(address: Address | None) -> dict[str, str]:
    if address is None:
        return {}
    told = {URL_VARIABLE: address.url, TOKEN_VARIABLE: address.token}
    return told if address.ca is None else {**told, CA_VARIABLE: address.ca}
