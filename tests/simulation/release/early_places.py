"""Places that a simulated log gives out before its sync, and what a crash leaves of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

Entry = tuple[Any, ...]


class Given(NamedTuple):
    """An early answer: the start of the log that gave the place, and the place."""

    start: int
    place: int


@dataclass
class EarlyPlaces:
    """Answered and not synced; below `below[start]` all that the start gave is there."""

    start: int = 1
    next_place: int = 1
    below: dict[int, int] = field(default_factory=dict)
    unsynced: set[Entry] = field(default_factory=set)
    synced_place: int = 1
    synced_below: dict[int, int] = field(default_factory=dict)

    def give(self, entry: Entry) -> Given:
        given = Given(self.start, self.next_place)
        self.next_place += 1
        self.below[self.start] = self.next_place
        self.unsynced.add(entry)
        return given

    def sync(self) -> None:
        self.unsynced.clear()
        self.synced_place, self.synced_below = self.next_place, dict(self.below)

    def crash(self) -> set[Entry]:
        """Back to what was synced, under another start; the entries that are lost."""
        lost, self.unsynced = self.unsynced, set()
        self.next_place, self.below = self.synced_place, dict(self.synced_below)
        self.start += 1
        return lost
