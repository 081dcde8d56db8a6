"""Commits of a stream: rows between two of them, and one found by halving."""

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


def counts_between(
    index: CommitIndex, stream: StreamRecord, after: Lsn, end: Lsn
) -> tuple[int, int]:
    """Rows and bytes of a stream in `(after, end]`."""
    last = index.commit_at(stream, end) if end > after else None
    if last is None:
        return 0, 0
    before = index.commit_at(stream, after)
    if before is None:
        return last.rows_total, last.bytes_total
    return last.rows_total - before.rows_total, last.bytes_total - before.bytes_total


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
