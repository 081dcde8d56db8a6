"""Processor time of processes and of all that they have started."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import psutil

from penstock.clock import SYSTEM_CLOCK


def cpu_in(pids: Iterable[int], seconds: float) -> float | None:
    """Processor time of so many seconds, from now on; None if a process is gone."""
    known = tuple(pids)
    before_s = cpu_s(known)
    SYSTEM_CLOCK.sleep(seconds)
    after_s = cpu_s(known)
    return None if before_s is None or after_s is None else after_s - before_s


def cpu_s(pids: Iterable[int]) -> float | None:
    """Processor time so far; None if a process is gone.

    A child that ends while its time is read is counted by its parent, which the kernel hands the
    time of every child that it has waited for.
    """
    try:
        roots = [psutil.Process(pid) for pid in pids]
        root_s = sum(_own_and_ended_s(root) for root in roots)
        descendants = {child for root in roots for child in root.children(recursive=True)}
    except psutil.Error:
        return None
    return root_s + sum(_time_if_alive_s(child) for child in descendants) if roots else None


def _time_if_alive_s(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.Error):
        return _own_and_ended_s(process)
    return 0.0


def _own_and_ended_s(process: psutil.Process) -> float:
    """Processor time of a process and of its children that have ended."""
    times = process.cpu_times()
    return float(times.user + times.system + times.children_user + times.children_system)
