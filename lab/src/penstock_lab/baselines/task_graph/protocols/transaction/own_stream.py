"""The own stream of a coordinator, its steps: how much of it has to be kept. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.ids import BEFORE_ALL, Lsn

TRIM_EVERY = 1_000
"""Steps from one trim to the next: a recovery reads about twice as many at most."""


class OwnStream:
    """Says when to trim, and up to where no recovery needs the steps.

    What stands still longer than from one trim to the next is to be said anew, so that it does not
    keep everything after it.
    """

    def __init__(self, trim_every: int = TRIM_EVERY) -> None:
        self._trim_every = trim_every
        self._count = 0
        self._newest = self._newest_before = BEFORE_ALL
        self._under_way: list[Lsn] = []

    def begin(self) -> Lsn:
        """A step is on its way to the log: it will be after this place."""
        self._under_way.append(self._newest)
        return self._newest

    def end(self, begun: Lsn, lsn: Lsn | None) -> None:
        """End a step: it is at a place in the log and noted, or is not there."""
        self._under_way.remove(begun)
        if lsn is not None:
            self.read(lsn)

    def read(self, lsn: Lsn) -> None:
        """Note the step at this place."""
        self._newest = max(self._newest, lsn)
        self._count += 1

    @property
    def is_due(self) -> bool:
        return self._count >= self._trim_every

    def start_trim(self) -> Lsn:
        """Before the trim, what was last said before this place must be said anew."""
        self._count = 0
        old, self._newest_before = self._newest_before, self._newest
        return old

    def until(self, needed: Iterable[Lsn]) -> Lsn:
        """The place up to which to trim, if the steps at `needed` and after them are needed."""
        return min((self._newest, *self._under_way, *(Lsn(lsn - 1) for lsn in needed)))
