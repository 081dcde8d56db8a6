"""Decisions of a policy: cut the batch now, or wait until a moment; each with its reason."""

from __future__ import annotations

import msgspec

LOOKS_PER_WAIT = 2
"""New rows lead to another decision once half of the time left to the moment has passed."""
LOOK_MS_MIN = 5.0


class Cut(msgspec.Struct, frozen=True):
    """The next batch begins now, with so many rows or bytes at most (None: all that wait).

    `predicted_ms` is cut to visible as far as it can be told; `left_ms` the time left to the
    deadline of the oldest row, negative if that has passed, None without a deadline; `core_ms` the
    predicted core-time; `weight` is its importance under `rdas`, in (0, 1]. `is_below_floor`:
    no batch has been as fast as the deadline asks for.
    """

    reason: str
    rows_max: int | None = None
    bytes_max: int | None = None
    predicted_ms: float | None = None
    left_ms: float | None = None
    weight: float = 1.0
    core_ms: float = 0.0
    longest_task_ms: float = 0.0
    is_below_floor: bool = False


class Wait(msgspec.Struct, frozen=True):
    """No batch before `until_ms` on the caller's monotonic clock, if nothing new arrives.

    `core_ms` and `deadline_at_ms` are those of the batch that is planned for then: other queries
    reckon with it. `gives_way`: it waits for another query, whose end is the moment to look again.
    """

    until_ms: float
    reason: str
    core_ms: float = 0.0
    deadline_at_ms: float | None = None
    gives_way: bool = False


Decision = Cut | Wait


def data_wakes_from_ms(wait: Wait, now_ms: float) -> float:
    """The moment from which new rows end a wait, so that a busy stream does not mean a decision for
    each append: a part of the wait passes first. Where nothing waits yet, use `now_ms` instead."""
    return now_ms + max(LOOK_MS_MIN, (wait.until_ms - now_ms) / LOOKS_PER_WAIT)
