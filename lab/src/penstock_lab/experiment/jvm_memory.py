"""The most memory a process had at a time, its native part included, as the kernel counts it."""

from __future__ import annotations

import re
from pathlib import Path

import psutil

PROC = Path("/proc")
KB_PER_MB = 1024.0
# Writing this to a process's clear_refs makes the kernel forget the peak so far.
FORGET_PEAK = "5"


def jvm_of(pid: int) -> int | None:
    """The JVM that a process has started; None if there is none."""
    for child in psutil.Process(pid).children(recursive=True):
        if child.name() == "java":
            return int(child.pid)
    return None


def forget_peak(pid: int, proc: Path = PROC) -> bool:
    """From now on `peak_mb` is of what follows; False where the kernel does not let us."""
    try:
        (proc / str(pid) / "clear_refs").write_text(FORGET_PEAK, encoding="ascii")
    except OSError:
        return False
    return True


def peak_mb(pid: int, proc: Path = PROC) -> float | None:
    """The peak of a process's memory; None where the kernel does not tell."""
    try:
        status = (proc / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
    return None if peak is None else int(peak[1]) / KB_PER_MB
