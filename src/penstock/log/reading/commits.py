"""Commits of a stream found by halving, over the one question an index has to answer for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from penstock.log.state import Commit, StreamRecord
from penstock.model.ids import Lsn


class CommitIndex(Protocol):
    """The commits of streams by position; a view of the store is one."""

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        """The last commit at or before `lsn`."""
        ...

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        """Every commit from `start` to `until`, both included, in order."""
        ...


def last_commit_where(
    index: CommitIndex,
    stream: StreamRecord,
    low: Lsn,
    high: Lsn,
    holds: Callable[[Commit], bool],
) -> Commit | None:
    """The last commit in `(low, high]` for which `holds`, which is true of a first part only."""
    last: Commit | None = None
    while low < high:
        middle = Lsn((low + high + 1) // 2)
        commit = index.commit_at(stream, middle)
        if commit is None or commit.lsn <= low:
            low = middle
        elif holds(commit):
            last, low = commit, middle
        else:
            high = Lsn(commit.lsn - 1)
    return last
