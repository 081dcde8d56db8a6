"""Orders in which cached keys are given up: by timestamp, by last use, by the hand of a clock.

An order knows keys and timestamps, not values: `ValueCache` asks it whom to give up when its budget
is spent. Every operation is O(1), or O(log n) for the order by timestamp.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Hashable
from itertools import count
from typing import Protocol

from penstock.errors import BadCall


class EvictionOrder(Protocol):
    """An order among keys; a key is in it once."""

    def add(self, key: Hashable, at_ms: int) -> None:
        """Take in a key that is not in the order."""
        ...

    def renew(self, key: Hashable, at_ms: int) -> None:
        """Note that a key in the order was read, or is expected to be."""
        ...

    def remove(self, key: Hashable) -> None:
        """Take out a key, wherever it stands."""
        ...

    def pop_victim(self) -> Hashable | None:
        """Take out the key to be given up first; None from an empty order."""
        ...


class TimestampOrder:
    """The key with the oldest timestamp goes first; of a key's timestamps the latest counts.

    A heap whose entries may be out of date: a renewal only writes the new timestamp down, and the
    entry is moved when it comes to the top. Keys removed leave their entry behind, so the heap is
    made anew when most of it is of that kind.
    """

    def __init__(self) -> None:
        self._at_ms: dict[Hashable, tuple[int, int]] = {}
        self._heap: list[tuple[int, int, Hashable]] = []
        self._ticket = count()

    def add(self, key: Hashable, at_ms: int) -> None:
        # The ticket tells equal timestamps apart, the first taken in first, and an entry of a key
        # that was removed from the one it has after it came back.
        ticket = next(self._ticket)
        self._at_ms[key] = (at_ms, ticket)
        heapq.heappush(self._heap, (at_ms, ticket, key))
        if len(self._heap) > 64 + 2 * len(self._at_ms):
            self._heap = [(at, number, kept) for kept, (at, number) in self._at_ms.items()]
            heapq.heapify(self._heap)

    def renew(self, key: Hashable, at_ms: int) -> None:
        before_ms, ticket = self._at_ms[key]
        if at_ms > before_ms:
            self._at_ms[key] = (at_ms, ticket)

    def remove(self, key: Hashable) -> None:
        del self._at_ms[key]

    def pop_victim(self) -> Hashable | None:
        while self._heap:
            at_ms, ticket, key = heapq.heappop(self._heap)
            current = self._at_ms.get(key)
            if current is None or current[1] != ticket:
                continue
            if current[0] > at_ms:
                heapq.heappush(self._heap, (current[0], ticket, key))
                continue
            del self._at_ms[key]
            return key
        return None


class LruOrder:
    """The key not renewed for longest goes first; timestamps do not count."""

    def __init__(self) -> None:
        self._keys: OrderedDict[Hashable, None] = OrderedDict()

    def add(self, key: Hashable, at_ms: int) -> None:
        self._keys[key] = None

    def renew(self, key: Hashable, at_ms: int) -> None:
        self._keys.move_to_end(key)

    def remove(self, key: Hashable) -> None:
        del self._keys[key]

    def pop_victim(self) -> Hashable | None:
        return self._keys.popitem(last=False)[0] if self._keys else None


class ClockOrder:
    """Second chance: a hand goes round, spares keys renewed since its last visit, once each."""

    def __init__(self) -> None:
        self._was_renewed: OrderedDict[Hashable, bool] = OrderedDict()

    def add(self, key: Hashable, at_ms: int) -> None:
        self._was_renewed[key] = False

    def renew(self, key: Hashable, at_ms: int) -> None:
        self._was_renewed[key] = True

    def remove(self, key: Hashable) -> None:
        del self._was_renewed[key]

    def pop_victim(self) -> Hashable | None:
        while self._was_renewed:
            key, was_renewed = self._was_renewed.popitem(last=False)
            if not was_renewed:
                return key
            # The hand is always at the front: what it passes goes to the end of the round.
            self._was_renewed[key] = False
        return None


OFF = "off"
ORDERS: dict[str, type[EvictionOrder]] = {
    "timestamp": TimestampOrder,
    "lru": LruOrder,
    "clock": ClockOrder,
}
POLICIES = (*ORDERS, OFF)


def order_of(policy: str) -> EvictionOrder:
    """A new order of that policy; with `off` nothing is cached, so any order serves."""
    if policy not in POLICIES:
        raise BadCall(
            f"there is no cache policy {policy!r}; there is {', '.join(POLICIES)}",
            code="bad_enrich",
        )
    return ORDERS.get(policy, LruOrder)()
