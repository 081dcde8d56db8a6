"""Eviction orders: which entry of a cache leaves next.

The specification is as short as it can be, and slow. Its Scala twins, in
`penstock.prefetch.EvictionOrder`, answer the same vectors, `tests/vectors/cache.json`. What was
hinted and not read yet is pinned, and in no order: it is taken out, and added when it is read.
"""

from __future__ import annotations

from typing import Literal, Protocol, get_args

Policy = Literal["timestamp", "lru", "clock"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Order(Protocol):
    """The entries that may be evicted, by key."""

    def add(self, key: str, at_ms: int) -> None: ...

    def renew(self, key: str, at_ms: int) -> None:
        """Note a read or a hint of an entry; of its times the latest counts."""

    def remove(self, key: str) -> None: ...

    def victim(self) -> str | None:
        """The next to leave, which stays until it is removed."""


class TimestampOrder:
    """The oldest time first; of the same time, the one renewed longest ago."""

    def __init__(self) -> None:
        self._turns = 0
        self._times: dict[str, tuple[int, int]] = {}

    def add(self, key: str, at_ms: int) -> None:
        self._turns += 1
        self._times[key] = (at_ms, self._turns)

    def renew(self, key: str, at_ms: int) -> None:
        self.add(key, max(at_ms, self._times[key][0]))

    def remove(self, key: str) -> None:
        del self._times[key]

    def victim(self) -> str | None:
        return min(self._times, key=self._times.__getitem__, default=None)


class LruOrder:
    """The one renewed longest ago first, whatever its time."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def add(self, key: str, at_ms: int) -> None:
        self._keys.append(key)

    def renew(self, key: str, at_ms: int) -> None:
        self._keys.remove(key)
        self._keys.append(key)

    def remove(self, key: str) -> None:
        self._keys.remove(key)

    def victim(self) -> str | None:
        return self._keys[0] if self._keys else None


class ClockOrder:
    """A hand goes round: who was added or renewed since it last came by stays.

    The list begins where the hand is; None in it is the place where the round begins.
    """

    def __init__(self) -> None:
        self._round: list[str | None] = [None]
        self._referenced: set[str | None] = set()

    def add(self, key: str, at_ms: int) -> None:
        self._round.append(key)
        self._referenced.add(key)

    def renew(self, key: str, at_ms: int) -> None:
        self._referenced.add(key)

    def remove(self, key: str) -> None:
        self._round.remove(key)
        self._referenced.discard(key)

    def victim(self) -> str | None:
        if self._round == [None]:
            return None
        while self._round[0] is None or self._round[0] in self._referenced:
            self._referenced.discard(self._round[0])
            self._round.append(self._round.pop(0))
        return self._round[0]


def order_of(policy: Policy) -> Order:
    """A new order of a policy."""
    orders: dict[Policy, type[TimestampOrder] | type[LruOrder] | type[ClockOrder]] = {
        "timestamp": TimestampOrder,
        "lru": LruOrder,
        "clock": ClockOrder,
    }
    return orders[policy]()
