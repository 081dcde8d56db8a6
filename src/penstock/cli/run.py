"""`penstock run`: a PySpark job under supervision."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

import click

from penstock.cli.restarts import Again, Bounds, Done, Ended, Restarts
from penstock.clock import SYSTEM_CLOCK, Clock

LINES_KEPT = 400
LINE_CHARS_KEPT = 2_000
LINES_SHOWN = 20
STOP_S_MAX = 30.0
LEFT_OVER_S_MAX = 5.0

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, None: 1.0, "m": 60.0, "h": 3600.0}


def _seconds(_: click.Context, param: click.Parameter, value: str) -> float:
    """Seconds from a text such as 500ms, 30s, 10m or 1h; a bare number is seconds."""
    found = _DURATION.fullmatch(value)
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(
            f"{value!r} is not a time above 0 such as 500ms, 30s, 10m or 1h", param=param
        )
    return float(found[1]) * _SECONDS[found[2]]


class Job:
    """Runs a command again and again, and passes signals on to the run there is.

    The job has a process group of its own: the terminal's Ctrl-C reaches it through us, once. What
    it leaves behind when it ends, such as its JVM, is gone before the next run begins.
    """

    def __init__(self, command: list[str], clock: Clock) -> None:
        self._command = command
        self._clock = clock
        self._process: subprocess.Popen[bytes] | None = None
        self._told = threading.Event()
        self._signal: int | None = None

    def told(self) -> int | None:
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
        self._told.set()
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
        self._told.wait(seconds)

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


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--restarts", default=10, show_default=True, type=click.IntRange(0),
    help="Restarts within --window before giving up.",
)  # fmt: skip
@click.option(
    "--window", default="10m", show_default=True, callback=_seconds, metavar="TIME",
    help="How far back failures count: 500ms, 30s, 10m, 1h.",
)  # fmt: skip
@click.option(
    "--backoff", default="1s", show_default=True, callback=_seconds, metavar="TIME",
    help="Pause before the first restart; doubled for each one more, up to 30s.",
)  # fmt: skip
@click.argument("script", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(restarts: int, window: float, backoff: float, script: Path, args: tuple[str, ...]) -> int:
    """Run a PySpark job, and start it again when it fails.

    SCRIPT is run with this Python and ARGS. Ended with 0, it is done. Ended otherwise, it is
    started again after a pause, and each query goes on from its last committed batch. Errors that
    a restart cannot mend (a newer run has taken over, a wrong call, damaged data) and too many
    failures in a row end it for good, with the job's last lines and who must act. Ctrl-C and
    SIGTERM stop the job; what it has not finished 30 s later is killed.

    \b
    Example, for a job that ends with query.awaitTermination():
      penstock run --restarts 20 --window 1h hot_items.py --rate 2000
    """
    policy = Restarts(Bounds(restarts, window, backoff))
    job = Job([sys.executable, str(script), *args], SYSTEM_CLOCK)
    with job.passing_signals():
        while True:
            ended = job.run()
            if (told := job.told()) is not None:
                return 0 if ended.code == 0 else 128 + told
            decision = policy.decide(ended)
            if isinstance(decision, Done):
                return 0
            if isinstance(decision, Again):
                _say(f"{script}: {decision.reason}; in {decision.after_s:g} s")
                job.pause(decision.after_s)
                if (told := job.told()) is not None:
                    return 128 + told
                continue
            last = [f"    {line}" for line in ended.lines[-LINES_SHOWN:]] or ["    (nothing)"]
            _say("\n".join((f"{script}: {decision.reason}; its last lines:", *last)))
            _say(f"giving up: {decision.act}")
            return ended.code if ended.code > 0 else 128 - ended.code


def _say(sentence: str) -> None:
    click.echo(f"penstock run: {sentence}", err=True)
