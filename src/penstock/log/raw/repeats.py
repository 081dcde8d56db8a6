"""Repeats of one producer, told from its highest sequence and one bit for each just below it.

A producer numbers what it sends, and what it has under way lies within the log's own window; so a
record of fixed size says of every later entry whether it is new. It may be forgotten when no copy
of what it stands for can still be appended: `kept_ms` after the producer's last entry, if a sender
repeats, and a network holds back, for less than that. Time is the log's own, taken from the
entries, so that a slow reader forgets no sooner than a fast one; one entry moves it on by
`STEP_MS_MAX` at most, so that a clock that jumps ahead forgets nobody.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from penstock.errors import BadCall
from penstock.log.rules import RECORD_WINDOW

STEP_MS_MAX = 1_000
_BITS = (1 << RECORD_WINDOW) - 1


class Seen(msgspec.Struct, frozen=True, array_like=True):
    """The highest sequence of a producer, when the filter last heard of it, by its own time, and
    which sequences below it were seen: in hexadecimal, the lowest bit for the next lower one."""

    producer: str
    last: int
    at_ms: int
    below: str = "0"


class Duplicates:
    """A filter with one record for each producer heard of within `kept_ms`.

    At `producers_max` such producers a further one is refused, because forgetting any of them
    could let a repeat through.
    """

    def __init__(self, kept_ms: int, producers_max: int) -> None:
        self._kept_ms = kept_ms
        self._producers_max = producers_max
        self._seen: OrderedDict[str, Seen] = OrderedDict()  # the longest silent first
        self._now_ms = 0
        self._log_ms: int | None = None

    def __len__(self) -> int:
        return len(self._seen)

    def is_repeat(self, producer: str, seq: int, arrived_at_ms: int) -> bool:
        """Whether an entry of the producer was seen before; if not, it is from now on."""
        self._pass_time(arrived_at_ms)
        seen = self._seen.get(producer)
        if seen is None:
            self._check_room(producer)
            self._keep(producer, seq, 0)
            return False
        below = int(seen.below, 16)
        if seq > seen.last:
            ahead = min(seq - seen.last, RECORD_WINDOW + 1)
            self._keep(producer, seq, (below << 1 | 1) << (ahead - 1) & _BITS)
            return False
        bit = 1 << (seen.last - seq - 1) if 0 < seen.last - seq <= RECORD_WINDOW else 0
        if bit == 0 or below & bit:
            return True  # below the window the log itself appends nothing
        self._keep(producer, seen.last, below | bit)
        return False

    def _keep(self, producer: str, last: int, below: int) -> None:
        self._seen[producer] = Seen(producer, last, self._now_ms, f"{below:x}")
        self._seen.move_to_end(producer)

    def _check_room(self, producer: str) -> None:
        if len(self._seen) >= self._producers_max:
            raise BadCall(
                f"the producer {producer!r} is one too many: {len(self._seen)} others have "
                f"appended within {self._kept_ms} ms of the log's time; raise producers_max, or "
                "let producers keep their names",
                code="too_many_producers",
            )

    def saved(self) -> tuple[Seen, ...]:
        """The state that a filter which goes on from here must be given."""
        return tuple(
            Seen(seen.producer, seen.last, seen.at_ms - self._now_ms, seen.below)
            for seen in self._seen.values()
        )

    def restore(self, saved: tuple[Seen, ...]) -> None:
        self._seen = OrderedDict((seen.producer, seen) for seen in saved)
        self._now_ms, self._log_ms = 0, None

    def _pass_time(self, arrived_at_ms: int) -> None:
        passed = arrived_at_ms - (self._log_ms if self._log_ms is not None else arrived_at_ms)
        self._log_ms = arrived_at_ms
        self._now_ms += min(max(passed, 0), STEP_MS_MAX)
        while self._seen:
            longest_silent = next(iter(self._seen.values()))
            if self._now_ms - longest_silent.at_ms <= self._kept_ms:
                return
            del self._seen[longest_silent.producer]
