"""How the processes of a demo or a benchmark behave: quiet, early, and gone when told to go."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psutil

SENDER_NICE = -10


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
        psutil.Process().nice(nice)
    except (psutil.AccessDenied, PermissionError):
        return False
    return True


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
