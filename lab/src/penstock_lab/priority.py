"""The processor before others, for what must be on time and hardly uses it."""

from __future__ import annotations

import os

from penstock_lab.processes import raise_priority

REAL_TIME = 1
"""The lowest of the real-time priorities is above every ordinary one."""


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
    """As `thread_first_in_line`, or, where that is not allowed, a raised priority of the process.

    With the latter a thread may wait for tens of milliseconds on a busy machine.
    """
    return thread_first_in_line() or raise_priority()
