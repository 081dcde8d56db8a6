"""What is run, as values: a query somewhere, at a rate and a pace, and a system there."""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.suites import key_of

BACK_TO_BACK = 0.0
PAPER_TRIGGER_S = 3.0
MAIN_RATE = 2_500


class Cell(msgspec.Struct, frozen=True):
    """Everything but the system: what two systems are compared at."""

    query: str
    store: str
    every_s: float
    """The trigger interval; 0: a batch begins when the one before is done."""
    has_changelog: bool
    rate: int = MAIN_RATE

    @property
    def name(self) -> str:
        """As in figures: QUERY.STORE.TRIGGER.CHANGELOG; a rate that is not the usual one shows."""
        query = key_of(self.query)
        if self.rate != MAIN_RATE:
            query = f"{query}@{self.rate}"
        return f"{query}.{self.store}.{self.every_s:g}s.{'on' if self.has_changelog else 'off'}"

    @property
    def is_back_to_back(self) -> bool:
        return self.every_s == BACK_TO_BACK

    @property
    def words(self) -> str:
        pace = "back to back" if self.is_back_to_back else f"every {self.every_s:g} s"
        changelog = "changelog" if self.has_changelog else "snapshots"
        return f"{key_of(self.query)} at {self.rate:,}/s, {self.store}, {pace}, {changelog}"


class Group(msgspec.Struct, frozen=True):
    """Cells that one Spark process per system runs; all of them agree on the changelog."""

    systems: tuple[str, ...]
    cells: tuple[Cell, ...]

    @property
    def has_changelog(self) -> bool:
        return self.cells[0].has_changelog


def rotated(systems: tuple[str, ...], repeat: int, place: int) -> tuple[str, ...]:
    """Systems take turns within a cell of a repeat, and in who goes first."""
    shift = (repeat + place) % len(systems)
    return (*systems[shift:], *systems[:shift])
