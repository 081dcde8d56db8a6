"""A job as a process of its own: started, signalled, cleared away, its last lines kept."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import IO

from penstock.clock import Clock
from penstock.supervise.restarts import Ended

LINES_KEPT = 400
LINE_CHARS_KEPT = 2_000
STOP_S_MAX = 30.0
LEFT_OVER_S_MAX = 5.0


class Job:
    """Runs a command again and again, and passes signals on to the run there is.

    The job has a process group of its own: the terminal's Ctrl-C reaches it through us, once. What
    it leaves behind when it ends, such as its JVM, is gone before the next run begins.
    """

    def __init__(self, command: list[str], clock: Clock) -> None:
        self._command = command
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._stop_asked = threading.Event()
        self._signal: int | None = None

    def signal_sent(self) -> int | None:
        """The signal that said to stop, if one came."""
        return self._signal

    @contextmanager
    def passing_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM go to the job, once; a second one, or too long a wait, kills it."""
        before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        for each in before:
            signal.signal(each, self._pass_on)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        is_first = self._signal is None
        self._signal = number
        self._stop_asked.set()
        self._send(number if is_first else signal.SIGKILL)

    def _send(self, number: int) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        # Not Popen's own way, which takes a lock that the wait below may hold.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
        if number == signal.SIGKILL:
            return
        killing = threading.Timer(STOP_S_MAX, self._send, [signal.SIGKILL])
        killing.daemon = True
        killing.start()

    def pause(self, seconds: float) -> None:
        """Wait, or until a signal comes."""
        self._stop_asked.wait(seconds)

    def run(self) -> Ended:
        """One run of the job. Its errors are shown as they come, and the last ones kept."""
        kept: deque[str] = deque(maxlen=LINES_KEPT)
        process = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0
        )
        self._process = process
        assert process.stderr is not None
        reader = threading.Thread(target=_copy, args=(process.stderr, kept), daemon=True)
        reader.start()
        if self._signal is not None:
            # It came after the decision to start and before there was anyone to tell.
            self._send(self._signal)
        code = process.wait()
        self._end_group(process.pid)
        # A process that left the group may hold the pipe for ever: what it says is not waited for.
        reader.join(LEFT_OVER_S_MAX)
        return Ended(code, tuple(kept.copy()), self._clock.monotonic_s())

    def _end_group(self, group: int) -> None:
        """Let what the job has started end by itself for a while, then kill it."""
        until = self._clock.monotonic_s() + LEFT_OVER_S_MAX
        with contextlib.suppress(ProcessLookupError):
            while self._clock.monotonic_s() < until:
                os.killpg(group, 0)
                self._clock.sleep(0.02)
            os.killpg(group, signal.SIGKILL)


def _copy(source: IO[bytes], kept: deque[str]) -> None:
    with source:
        for line in source:
            text = line.decode("utf-8", "replace")
            sys.stderr.write(text)
            sys.stderr.flush()
            kept.append(text.rstrip()[:LINE_CHARS_KEPT])
