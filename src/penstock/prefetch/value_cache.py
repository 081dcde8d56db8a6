"""Values and absences of keys, within a budget of bytes; pure: time is an argument.

A value that was hinted and not read yet is *pinned*: no other hint and no read gives it up, while
there is something else to give up. Pins come to half of the budget at most, and one ends when its
value is read, or at the begin of a batch when its row is past: another worker had it, or it is not
coming, and the value counts as unused. Rows are hinted and read in one order, piece by piece: once
a value was read that a later piece has asked for, those before it are past when that batch is over.
Where nothing tells, they are when `PIN_BATCHES` batches have begun.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from penstock.prefetch.cache_policies import OFF, order_of

ENTRY_BYTES = 240
"""Python's own cost of an entry: its object, two places in dictionaries, its timestamps."""
PIN_BATCHES = 3
PINNED_SHARE_MAX = 0.5

Row: TypeAlias = tuple[Any, ...]
"""The values that a store has for a key, in the order of its columns."""


@dataclass(slots=True)
class Entry:
    """A value, or None: the store has nothing under the key."""

    row: Row | None
    entry_bytes: int
    at_ms: int
    expires_s: float | None
    is_prefetched: bool
    """Fetched for a hint and not read yet."""


class Pin(NamedTuple):
    """The batch in which a value was pinned, and the piece of hints that asked for it first."""

    batch: int
    piece: int


@dataclass(slots=True)
class CacheCounts:
    """Events of a cache since the last call of `take_counts`."""

    prefetched_used: int = 0
    prefetched_unused: int = 0
    evictions: int = 0
    expired: int = 0


class ValueCache:
    """A map from keys to values within a budget; not safe for threads.

    `ttl_s` is how long after a fetch was begun its value may be used; None: for ever. A value
    larger than the whole budget is not kept. With the policy `off` nothing is.
    """

    def __init__(self, policy: str, bytes_max: int, ttl_s: float | None = None) -> None:
        self._order = order_of(policy)
        self._bytes_max = 0 if policy == OFF else bytes_max
        self._ttl_s = ttl_s
        self._entries: dict[Hashable, Entry] = {}
        self._pins: OrderedDict[Hashable, Pin] = OrderedDict()
        """Pinned keys; what is pinned is in no order."""
        self._piece_read = 0
        """The latest piece of hints of which a row has read a value."""
        self._pinned_bytes = 0
        self._batch = 0
        self.counts = CacheCounts()
        self.cached_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._entries

    @property
    def has_room_for_hints(self) -> bool:
        return self._pinned_bytes < self._bytes_max * PINNED_SHARE_MAX

    def begin_batch(self) -> None:
        """Count a batch, before which all rows of the last one were read; pins of those end."""
        self._batch += 1
        over = [
            key
            for key, pin in self._pins.items()
            if pin.piece < self._piece_read or self._batch - pin.batch >= PIN_BATCHES
        ]
        for key in over:
            self.counts.prefetched_unused += 1
            self._unpin(key, self._entries[key])

    def read(self, key: Hashable, at_ms: int, now_s: float) -> Entry | None:
        """The entry of a key that a row needs, renewed; None if there is none that may be used."""
        entry = self._usable(key, now_s)
        if entry is None:
            return None
        if entry.is_prefetched:
            pin = self._pins.get(key)
            if pin is not None:
                self.counts.prefetched_used += 1
                self._piece_read = max(self._piece_read, pin.piece)
            self._unpin(key, entry)
        self._renew(key, entry, at_ms)
        return entry

    def expect(self, key: Hashable, at_ms: int, now_s: float) -> bool:
        """Whether a key that a hint names is there already; it is then renewed."""
        entry = self._usable(key, now_s)
        if entry is not None:
            self._renew(key, entry, at_ms)
        return entry is not None

    def put(
        self,
        key: Hashable,
        row: Row | None,
        at_ms: int,
        begun_s: float,
        *,
        is_hint: bool = False,
        piece: int = 0,
    ) -> bool:
        """Keep a value fetched since `begun_s`; False if there is no room for it.

        `piece` is the number of the piece of the stream that a hint is of: pieces are hinted in the
        order in which their rows are read. For a hint nothing pinned is given up; for a read, what
        was pinned first, if nothing else is left.
        """
        if key in self._entries:
            self._drop(key)
        entry_bytes = ENTRY_BYTES + size_of(key) + size_of(row)
        if entry_bytes > self._bytes_max or (is_hint and not self.has_room_for_hints):
            return False
        while self.cached_bytes + entry_bytes > self._bytes_max:
            victim = self._order.pop_victim()
            if victim is None:
                if is_hint:
                    return False
                victim = next(iter(self._pins))
                self._unpin(victim, self._entries[victim])
                self._order.remove(victim)
                self.counts.prefetched_unused += 1
            self.cached_bytes -= self._entries.pop(victim).entry_bytes
            self.counts.evictions += 1
        expires_s = None if self._ttl_s is None else begun_s + self._ttl_s
        self._entries[key] = Entry(row, entry_bytes, at_ms, expires_s, is_hint)
        self.cached_bytes += entry_bytes
        if is_hint:
            self._pins[key] = Pin(self._batch, piece)
            self._pinned_bytes += entry_bytes
        else:
            self._order.add(key, at_ms)
        return True

    def check(self) -> None:
        """Assert that the books agree; for tests."""
        assert self.cached_bytes == sum(entry.entry_bytes for entry in self._entries.values())
        assert self.cached_bytes <= self._bytes_max
        assert self._pinned_bytes == sum(self._entries[key].entry_bytes for key in self._pins)
        assert all(self._entries[key].is_prefetched for key in self._pins)

    def take_counts(self) -> CacheCounts:
        """The events since this was last called."""
        counts, self.counts = self.counts, CacheCounts()
        return counts

    def _usable(self, key: Hashable, now_s: float) -> Entry | None:
        entry = self._entries.get(key)
        if entry is None or entry.expires_s is None or now_s < entry.expires_s:
            return entry
        self.counts.expired += 1
        self._drop(key)
        return None

    def _renew(self, key: Hashable, entry: Entry, at_ms: int) -> None:
        entry.at_ms = max(entry.at_ms, at_ms)
        if key not in self._pins:
            self._order.renew(key, at_ms)

    def _unpin(self, key: Hashable, entry: Entry) -> None:
        """The value is in the order from now on, as if it had been read."""
        entry.is_prefetched = False
        if self._pins.pop(key, None) is not None:
            self._pinned_bytes -= entry.entry_bytes
            self._order.add(key, entry.at_ms)

    def _drop(self, key: Hashable) -> None:
        entry = self._entries[key]
        self.counts.prefetched_unused += key in self._pins
        self._unpin(key, entry)
        self._order.remove(key)
        del self._entries[key]
        self.cached_bytes -= entry.entry_bytes


def size_of(value: object) -> int:
    """The bytes that a value takes on Python's heap, with what it holds."""
    size = sys.getsizeof(value)
    if isinstance(value, (list, tuple)):
        size += sum(map(size_of, value))
    elif isinstance(value, dict):
        size += sum(size_of(key) + size_of(held) for key, held in value.items())
    return size
