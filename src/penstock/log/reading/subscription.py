"""Entries by tag as they come: a reader that waits, woken by the writer and by nothing else."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

from penstock.clock import Clock
from penstock.errors import BadCall
from penstock.log.contract import Entry
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, Lsn

ENTRIES_MAX = 1_000
BYTES_MAX = 8 << 20
SETTLE_S = 0.005

Reading = Callable[[], AbstractContextManager[StoreView]]


class Subscriptions:
    """Who waits for which tag. Every method may be called from any thread."""

    def __init__(self, reading: Reading, clock: Clock) -> None:
        self._reading = reading
        self._clock = clock
        self._by_tag: dict[str, set[Subscription]] = {}
        self._lock = threading.Lock()
        self.told = BEFORE_ALL
        """Of everything up to here, those who wait for it have been told."""

    def subscribe(self, tags: Iterable[str], after: Lsn) -> Subscription:
        made = Subscription(self, frozenset(tags), after, self._reading, self._clock)
        with self._lock:
            for tag in made.tags:
                self._by_tag.setdefault(tag, set()).add(made)
        return made

    def remove(self, subscription: Subscription) -> None:
        with self._lock:
            for tag in subscription.tags:
                there = self._by_tag.get(tag, set())
                there.discard(subscription)
                if not there:
                    self._by_tag.pop(tag, None)

    def notify(self, tags: Iterable[str], last: Lsn) -> None:
        """Entries with these tags can be read now, the last place of all being `last`."""
        with self._lock:
            for tag in tags if self._by_tag else ():
                for each in self._by_tag.get(tag, ()):
                    each.wake(tag)
            self.told = max(self.told, last)


class Subscription:
    """Reads entries with any of `tags` after a place, each once and in order. One reader thread.

    Only tags that got something since they were last read are looked at, so many quiet tags cost
    nothing. Entries can be read a moment before anybody is told of them; then all tags are looked
    at, because a later entry of one tag must not be given out before an earlier one of another.
    """

    def __init__(
        self,
        owner: Subscriptions,
        tags: frozenset[str],
        after: Lsn,
        reading: Reading,
        clock: Clock,
    ) -> None:
        self.tags = tags
        self.after = after
        self._owner = owner
        self._reading = reading
        self._clock = clock
        self._news = set(tags)
        self._wake = threading.Condition()
        self.is_closed = False

    def wake(self, tag: str) -> None:
        with self._wake:
            self._news.add(tag)
            self._wake.notify()

    def next(self, timeout_s: float) -> list[Entry]:
        """What follows, oldest first, at most `ENTRIES_MAX` entries and about `BYTES_MAX` bytes;
        waits for the first up to `timeout_s`, or until it is closed, then returns nothing. Entries
        that were trimmed before they could be given out are an error, `trimmed`, every time, and
        never left out."""
        until = self._clock.monotonic_s() + timeout_s
        while True:
            found, unsettled = self._read()
            if found:
                return found
            left = until - self._clock.monotonic_s()
            if left <= 0:
                return []
            with self._wake:
                if self.is_closed:
                    return []
                # Nobody is told when a place settles, which takes as long as a message does.
                if unsettled:
                    self._wake.wait(min(left, SETTLE_S))
                elif not self._news and not self._wake.wait(left):
                    return []

    def close(self) -> None:
        """Be woken no more, from any thread; a reader that waits is let go with nothing."""
        self._owner.remove(self)
        with self._wake:
            self.is_closed = True
            self._wake.notify()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> tuple[list[Entry], bool]:
        """What can be read now, and whether something is left that is not settled yet.

        No read begins once it is closed. One that fails has given nothing out, so the next begins
        where it began, and fails again if it must.
        """
        # In this order: what was told of by then is among the news, and what is among the news is
        # in the view. What is told of later is news for the next time.
        told = self._owner.told
        with self._wake:
            if self.is_closed or not self._news:
                return [], False
            looked_at, self._news = self._news, set()
        try:
            with self._reading() as view:
                if view.next_lsn - 1 > told:
                    looked_at = set(self.tags)
                settled = view.settled(self.tags)
                found, self.after, left = _following(view, looked_at, self.after, settled)
        except BaseException:
            self._look_again(looked_at)
            raise
        if left is not None:
            self._look_again(looked_at)
        return found, left is not None and left > settled

    def _look_again(self, tags: set[str]) -> None:
        with self._wake:
            self._news |= tags


def _following(
    view: StoreView, tags: set[str], after: Lsn, settled: Lsn
) -> tuple[list[Entry], Lsn, Lsn | None]:
    """Entries after a place, the place they reach to, and the first one that is left, if any."""
    check_whole(view, tags, after)
    found: list[Entry] = []
    size = 0
    for lsn in heapq.merge(*(view.tagged(tag, after + 1) for tag in tags)):
        if lsn == after:
            continue
        if lsn > settled or len(found) >= ENTRIES_MAX or size >= BYTES_MAX:
            return found, after, lsn
        entry = view.entry(lsn)
        after = lsn
        if entry is not None:
            found.append(entry)
            size += entry.head.payload_bytes
    return found, after, None


def check_whole(view: StoreView, tags: Iterable[str], after: int) -> None:
    """Refuse with `trimmed` to read on after a place where entries that follow it are gone."""
    for tag in tags:
        point = view.trimmed(tag)
        if point > after:
            raise BadCall(
                f"the tag {tag!r} is trimmed up to {point}, and entries after {after} were asked "
                f"for: those up to {point} are gone; start from {point}, or read faster than they "
                "are trimmed",
                code="trimmed",
                status=410,
            )
