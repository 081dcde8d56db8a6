"""Processes of the laboratory: quiet, early, spoken to line by line, and gone when stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import msgspec

from penstock.errors import TryAgain

READY = "ready"
SENDER_NICE = -10
REAL_TIME = 1
"""The lowest of the real-time priorities is above every ordinary one."""
PARENT_LOOK_EVERY_S = 0.25
STOP_TIMEOUT_S = 15.0
ENDING = (None, signal.SIGTERM, signal.SIGKILL)
"""None: its input has ended, which a child takes as a request."""


def end_on_sigterm() -> None:
    """Make SIGTERM end this process the way Ctrl-C does, through every `finally`.

    Without it a terminated process leaves the server and the JVM it started behind.
    """

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def raise_priority(nice: int = SENDER_NICE) -> bool:
    """Ask for the processor before others, so that a schedule can be kept; False if not allowed."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
    except PermissionError:
        return False
    return True


def thread_first_in_line() -> bool:
    """Run the calling thread, and those it starts, before all ordinary ones; False if not allowed.

    For threads that soon wait again: one that computes keeps everybody else from doing so.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(REAL_TIME))
    except (AttributeError, OSError):
        return False
    return True


def first_in_line() -> bool:
    """Put the thread first (`thread_first_in_line`), or, where that is refused, the process.

    With the latter a thread may wait for tens of milliseconds on a busy machine.
    """
    return thread_first_in_line() or raise_priority()


@contextlib.contextmanager
def output_to(path: Path) -> Iterator[None]:
    """Send what this process and its new children print to `path` while the block runs.

    Children keep the file for life: start the JVM inside, and Spark never writes to the terminal.
    Works on file descriptors, since the JVM does not know Python's `sys.stderr`.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    with path.open("ab") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    try:
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for was, descriptor in zip(saved, (1, 2), strict=True):
            os.dup2(was, descriptor)
            os.close(was)


def tail(path: Path, chars: int = 2_000) -> str:
    """The end of a log file, for an error message; empty without one."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()[-chars:]
    except FileNotFoundError:
        return ""


async def ended_with_parent() -> None:
    """Returns when the process that started this one is gone, however that went."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_LOOK_EVERY_S)


async def first_of(*waits: Awaitable[object]) -> None:
    """Returns when the first of them has; the others go on."""
    futures: list[asyncio.Future[object]] = [asyncio.ensure_future(wait) for wait in waits]
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


class Late(TryAgain):
    """A child runs and does not answer."""


class Child:
    """A Python module run as a process that is told things and answers, a line each.

    What it prints to stderr goes to `log`. `stop` may be called twice, and after `kill`.
    """

    def __init__(
        self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._name = name
        self._log = log
        self._lines: queue.Queue[bytes] = queue.Queue()
        with log.open("ab") as errors:
            # A session of its own: Ctrl-C is for the command, which then ends its children.
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env={**os.environ, **(env or {})},
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

    def is_running(self) -> bool:
        return self._process.poll() is None

    def tell(self, line: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            # Whoever waits for the answer learns that the process is gone.
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def wait_line(self, timeout_s: float | None = None) -> bytes:
        """The child's next line; TryAgain if it ended first, Late if it took longer."""
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise Late(
                f"{self._name} did not answer in {timeout_s:g} s", code="no_answer"
            ) from None
        if not line:
            self._lines.put(line)
            self._process.wait()
            raise self.failed()
        return line

    def failed(self) -> TryAgain:
        """The error to raise for a child that has ended by itself."""
        return TryAgain(
            f"{self._name} ended with {self._process.poll()}; "
            f"it said: {tail(self._log) or 'nothing'}",
            code="worker_failed",
        )

    def stop(self, *, at_once: bool = False) -> None:
        """End the child and whatever it started; `at_once` does not wait for what it is at."""
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
        """Send SIGKILL, after which the child has no chance to do anything more."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self.stop()

    def freeze(self) -> None:
        """Send SIGSTOP: the child is as good as dead to all others, and does not know it."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait_end(self, timeout_s: float) -> int:
        """The exit code of a child that ends by itself."""
        code = self._process.wait(timeout_s)
        self.stop()
        return code

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip(b"\n"))
        self._lines.put(b"")


class JobChild(Child):
    """A module that takes its job as one JSON argument, and says when it is ready."""

    def __init__(self, module: str, job: msgspec.Struct, log: Path) -> None:
        super().__init__(module, (module, msgspec.json.encode(job).decode("utf-8")), log)

    def wait_ready(self) -> None:
        """Blocks until the child says that it is."""
        if self.wait_line().decode("utf-8") != READY:
            raise self.failed()

    def stop(self, *, at_once: bool = True) -> None:
        # The end of its input is not a request to such a child.
        super().stop(at_once=at_once)

    def stop_for_report(self) -> bytes | None:
        """Stop the child; the last line it printed and nobody has waited for, if there is one."""
        self.stop()
        report = None
        while not self._lines.empty():
            report = self._lines.get_nowait() or report
        return report
