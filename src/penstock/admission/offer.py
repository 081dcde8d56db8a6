"""The data that wait for the next batch of a query, as its sources offer them at one moment."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class CutsBy(StrEnum):
    """The unit in which a source takes a limit for one batch."""

    ROWS = "rows"
    BYTES = "bytes"
    FILES = "files"
    NOTHING = "nothing"


class Waiting(msgspec.Struct, frozen=True):
    """One source's waiting data; None is a number that the source cannot tell.

    `oldest_age_ms` is the age of the oldest thing that waits, None if nothing does.
    """

    source: int
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    oldest_age_ms: float | None = None
    cuts_by: CutsBy = CutsBy.NOTHING

    @property
    def has_data(self) -> bool:
        if self.oldest_age_ms is not None:
            return True
        return any(count for count in (self.rows, self.bytes, self.files))

    @property
    def takes_uncounted_rows(self) -> bool:
        """Whether the source takes a limit of rows and cannot tell how many wait."""
        return self.cuts_by is CutsBy.ROWS and self.rows is None


class Offer(msgspec.Struct, frozen=True):
    """All sources of a query, and how it asks.

    `is_first`: the first question after a batch, which is never held; `must_cut`: data are not
    withheld, whatever the policy says. `schedule` is the order of tasks in force, if it was told.
    """

    inputs: tuple[Waiting, ...]
    cores: int
    is_first: bool = False
    must_cut: bool = False
    schedule: str | None = None

    @property
    def has_data(self) -> bool:
        return any(waiting.has_data for waiting in self.inputs)

    @property
    def rows(self) -> int | None:
        """Rows that wait in all sources together; None if one that has data cannot tell."""
        return _total([waiting.rows for waiting in self.inputs if waiting.has_data])

    @property
    def bytes(self) -> int | None:
        """Bytes that wait in all sources together; None if one that has data cannot tell."""
        return _total([waiting.bytes for waiting in self.inputs if waiting.has_data])

    @property
    def files(self) -> int | None:
        """Files that wait in all sources together; None if one that has data cannot tell."""
        return _total([waiting.files for waiting in self.inputs if waiting.has_data])

    @property
    def oldest_age_ms(self) -> float:
        """The age of the oldest row of all sources; 0 if nothing waits."""
        ages = [waiting.oldest_age_ms for waiting in self.inputs]
        return max((age for age in ages if age is not None), default=0.0)


def _total(counts: list[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
