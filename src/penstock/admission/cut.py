"""The end of the next micro-batch, and the reason for it. Pure: commits are looked up in an index
that is passed in."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.log.reading.commits import CommitIndex, last_commit_where
from penstock.log.state import Commit, StreamRecord
from penstock.model.ids import Lsn


class CutReason(StrEnum):
    """The reason why a batch ends where it does."""

    NOTHING_NEW = "nothing new is visible"
    ALL_VISIBLE = "all that is visible"
    UNTIL = "the end that was asked for"
    SUBSTREAMS_ADDED = "substreams were added here"
    ROWS_MAX = "the next commit has more rows than are left"
    BYTES_MAX = "the next commit has more bytes than are left"
    ONE_COMMIT = "one commit is more than the limits allow, and is not divided"


class Limits(msgspec.Struct, frozen=True):
    """The most a batch may hold, and a position it does not go past; None: no such limit."""

    rows_max: int | None = None
    bytes_max: int | None = None
    until: Lsn | None = None


NO_LIMITS = Limits()


class BatchEnd(msgspec.Struct, frozen=True):
    """The position where a batch ends. It is where the batch begins if there is nothing new."""

    end: Lsn
    reason: CutReason


def cut_batch(
    index: CommitIndex,
    stream: StreamRecord,
    after: Lsn,
    visible_end: Lsn,
    limits: Limits = NO_LIMITS,
) -> BatchEnd:
    """The end of a batch that begins after `after`: whole commits within all limits, at least one.

    A batch ends where the number of substreams changes, so that none has a key in two of them.
    """
    bound = _bound(stream, after, visible_end, limits)
    last = index.commit_at(stream, bound.end)
    if last is None or last.lsn <= after:
        return BatchEnd(after, CutReason.NOTHING_NEW)
    before = index.commit_at(stream, after)

    def excess(commit: Commit) -> CutReason | None:
        return _excess(before, commit, limits)

    if excess(last) is None:
        return BatchEnd(last.lsn, bound.reason)
    within = last_commit_where(
        index, stream, after, last.lsn, lambda commit: excess(commit) is None
    )
    start = after if within is None else within.lsn
    following = next(index.commits(stream, start + 1, last.lsn))
    if within is None:
        return BatchEnd(following.lsn, CutReason.ONE_COMMIT)
    return BatchEnd(within.lsn, excess(following) or bound.reason)


def _bound(stream: StreamRecord, after: Lsn, visible_end: Lsn, limits: Limits) -> BatchEnd:
    """The furthest end, whatever the batch may hold; of equal ones the first named counts."""
    bounds = [BatchEnd(visible_end, CutReason.ALL_VISIBLE)]
    if limits.until is not None:
        bounds.append(BatchEnd(limits.until, CutReason.UNTIL))
    bounds += [BatchEnd(turn, CutReason.SUBSTREAMS_ADDED) for turn in stream.turns if turn > after]
    return min(bounds, key=lambda bound: bound.end)


def _excess(before: Commit | None, commit: Commit, limits: Limits) -> CutReason | None:
    """The limit that a batch with everything up to `commit` exceeds, if there is one."""
    rows = commit.rows_total - (before.rows_total if before else 0)
    if limits.rows_max is not None and rows > limits.rows_max:
        return CutReason.ROWS_MAX
    size = commit.bytes_total - (before.bytes_total if before else 0)
    if limits.bytes_max is not None and size > limits.bytes_max:
        return CutReason.BYTES_MAX
    return None
