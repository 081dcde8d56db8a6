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

Reading = Callable[[], AbstractContextManager[StoreView]]
OnNews = Callable[[], None]
"""Called by the writer once there is something to read; it must not wait, nor read."""


class Subscriptions:
    """The readers that wait for each tag. Every method may be called from any thread."""

    def __init__(self, reading: Reading, clock: Clock) -> None:
        self._reading = reading
        self._clock = clock
        self._by_tag: dict[str, set[Subscription]] = {}
        self._lock = threading.Lock()
        self.notified = BEFORE_ALL
        """Of everything up to here, those who wait for it have been told."""

    def subscribe(
        self, tags: Iterable[str], after: Lsn, on_news: OnNews | None = None
    ) -> Subscription:
        made = Subscription(self, frozenset(tags), after, self._reading, self._clock, on_news)
        with self._lock:
            for tag in made.tags:
                self._by_tag.setdefault(tag, set()).add(made)
        return made

    def remove(self, subscription: Subscription) -> None:
        with self._lock:
            for tag in subscription.tags:
                readers = self._by_tag.get(tag, set())
                readers.discard(subscription)
                if not readers:
                    self._by_tag.pop(tag, None)

    def notify(self, tags: Iterable[str], last: Lsn) -> None:
        """Entries with these tags can be read now, the last place of all being `last`."""
        with self._lock:
            for tag in tags if self._by_tag else ():
                for each in self._by_tag.get(tag, ()):
                    each.wake(tag)
            self.notified = max(self.notified, last)

    def wake_all(self) -> None:
        """Wake all readers: something has settled that may have had any tag."""
        with self._lock:
            for each in {each for readers in self._by_tag.values() for each in readers}:
                each.wake(min(each.tags))


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
        on_news: OnNews | None = None,
    ) -> None:
        """`on_news` is for a reader that does not wait in `next`: after it was called, once, it is
        called again only for what comes after the next read has begun."""
        self.tags = tags
        self.after = after
        self._owner = owner
        self._reading = reading
        self._clock = clock
        self._news = set(tags)
        self._on_news = on_news
        self._is_called = False
        self._wakes = 0
        self._wake = threading.Condition()
        self.is_closed = False

    def wake(self, tag: str) -> None:
        with self._wake:
            self._news.add(tag)
            self._wakes += 1
            self._wake.notify()
            is_first, self._is_called = not self._is_called, True
        if is_first and self._on_news is not None:
            self._on_news()

    @property
    def has_news(self) -> bool:
        """Whether something may be read, or was left unread because it is not settled yet."""
        return bool(self._news)

    def next(self, timeout_s: float) -> list[Entry]:
        """Entries that follow, oldest first, at most `ENTRIES_MAX` and about `BYTES_MAX` bytes;
        waits for the first up to `timeout_s`, or until it is closed, then returns nothing. Entries
        that were trimmed before they could be given out are an error, `trimmed`, every time, and
        never left out."""
        until = self._clock.monotonic_s() + timeout_s
        while True:
            wakes = self._wakes
            entries, unsettled = self._read()
            if entries:
                return entries
            left = until - self._clock.monotonic_s()
            if left <= 0:
                return []
            with self._wake:
                if self.is_closed:
                    return []
                # What has settled since the read began has woken it since then.
                is_behind = unsettled and self._wakes == wakes
                if (is_behind or not self._news) and not self._wake.wait(left):
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
        notified = self._owner.notified
        with self._wake:
            if self.is_closed or not self._news:
                return [], False
            looked_at, self._news, self._is_called = self._news, set(), False
        try:
            with self._reading() as view:
                if view.next_lsn - 1 > notified:
                    looked_at = set(self.tags)
                settled = view.settled(self.tags)
                entries, self.after, left = _following(view, looked_at, self.after, settled)
        except BaseException:
            self._look_again(looked_at)
            raise
        if left is not None:
            self._look_again(looked_at)
        return entries, left is not None and left > settled

    def _look_again(self, tags: set[str]) -> None:
        with self._wake:
            self._news |= tags


def _following(
    view: StoreView, tags: set[str], after: Lsn, settled: Lsn
) -> tuple[list[Entry], Lsn, Lsn | None]:
    """Entries after a place, the place they reach to, and the first one that is left, if any."""
    check_whole(view, tags, after)
    entries: list[Entry] = []
    size = 0
    for lsn in heapq.merge(*(view.tagged(tag, after + 1) for tag in tags)):
        if lsn == after:
            continue
        if lsn > settled or len(entries) >= ENTRIES_MAX or size >= BYTES_MAX:
            return entries, after, lsn
        entry = view.entry(lsn)
        after = lsn
        if entry is not None:
            entries.append(entry)
            size += entry.head.payload_bytes
    return entries, after, None


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
