"""Where a batch ends and why, over an index that is a list of commits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.admission.cut import NO_LIMITS, BatchEnd, CutReason, Limits, cut_batch
from penstock.log.state import Commit, StreamRecord
from penstock.model.ids import Lsn, StreamName


class Index:
    """Commits at places 10, 20, 30, …, each with so many rows of ten bytes."""

    def __init__(self, *rows: int) -> None:
        totals = [sum(rows[: place + 1]) for place in range(len(rows))]
        self.all = [
            Commit(Lsn(10 * (place + 1)), total, 10 * total, 0, ())
            for place, total in enumerate(totals)
        ]

    def commit_at(self, stream: StreamRecord, lsn: int) -> Commit | None:
        return next((commit for commit in reversed(self.all) if commit.lsn <= lsn), None)

    def commits(self, stream: StreamRecord, start: int, until: int) -> Iterator[Commit]:
        return (commit for commit in self.all if start <= commit.lsn <= until)


def stream(*turns: int) -> StreamRecord:
    return StreamRecord(1, StreamName("s"), b"", 1, (), (), tuple(Lsn(turn) for turn in turns))


FIVE = Index(10, 10, 10, 10, 10)


@pytest.mark.parametrize(
    ("after", "limits", "end", "reason"),
    [
        (0, NO_LIMITS, 50, CutReason.ALL_VISIBLE),
        (50, NO_LIMITS, 50, CutReason.NOTHING_NEW),
        (20, Limits(until=Lsn(20)), 20, CutReason.NOTHING_NEW),
        (0, Limits(until=Lsn(30)), 30, CutReason.UNTIL),
        (0, Limits(until=Lsn(50)), 50, CutReason.ALL_VISIBLE),
        (0, Limits(rows_max=25), 20, CutReason.ROWS_MAX),
        (10, Limits(rows_max=20), 30, CutReason.ROWS_MAX),
        (0, Limits(rows_max=50), 50, CutReason.ALL_VISIBLE),
        (0, Limits(bytes_max=399), 30, CutReason.BYTES_MAX),
        (0, Limits(rows_max=35, bytes_max=250), 20, CutReason.BYTES_MAX),
        (0, Limits(rows_max=25, bytes_max=350), 20, CutReason.ROWS_MAX),
        (0, Limits(rows_max=3), 10, CutReason.ONE_COMMIT),
        (40, Limits(bytes_max=1), 50, CutReason.ONE_COMMIT),
    ],
)
def test_a_batch_ends_at_a_commit_and_says_why(
    after: int, limits: Limits, end: int, reason: CutReason
) -> None:
    assert cut_batch(FIVE, stream(), Lsn(after), Lsn(50), limits) == BatchEnd(Lsn(end), reason)


def test_what_is_not_visible_is_not_read() -> None:
    assert cut_batch(FIVE, stream(), Lsn(0), Lsn(30)) == BatchEnd(Lsn(30), CutReason.ALL_VISIBLE)


def test_a_batch_ends_where_substreams_were_added() -> None:
    """Added after 20 and again after 30: no batch has rows from before and after.

    places    10   20 | 30 | 40   50
    batches   ------->|--->|------->
    """
    ends = [cut_batch(FIVE, stream(20, 30), Lsn(after), Lsn(50)) for after in (0, 10, 20, 30)]
    assert ends == [
        BatchEnd(Lsn(20), CutReason.SUBSTREAMS_ADDED),
        BatchEnd(Lsn(20), CutReason.SUBSTREAMS_ADDED),
        BatchEnd(Lsn(30), CutReason.SUBSTREAMS_ADDED),
        BatchEnd(Lsn(50), CutReason.ALL_VISIBLE),
    ]
    limited = cut_batch(FIVE, stream(30), Lsn(0), Lsn(50), Limits(rows_max=20))
    assert limited == BatchEnd(Lsn(20), CutReason.ROWS_MAX)


@given(
    rows=st.lists(st.integers(1, 9), max_size=12),
    turns=st.sets(st.integers(1, 12).map(lambda place: 10 * place), max_size=3),
    rows_max=st.none() | st.integers(1, 30),
    bytes_max=st.none() | st.integers(1, 300),
)
def test_batches_follow_each_other_to_the_end_within_their_limits(
    rows: list[int], turns: set[int], rows_max: int | None, bytes_max: int | None
) -> None:
    index, end = Index(*rows), Lsn(10 * len(rows))
    record = stream(*sorted(turn for turn in turns if turn <= end))
    limits = Limits(rows_max, bytes_max)
    after, cut = Lsn(0), cut_batch(index, record, Lsn(0), end, limits)
    while cut.reason != CutReason.NOTHING_NEW:
        assert cut.end > after
        read = [commit for commit in index.all if after < commit.lsn <= cut.end]
        count = sum(rows[commit.lsn // 10 - 1] for commit in read)
        if len(read) > 1:
            assert rows_max is None or count <= rows_max
            assert bytes_max is None or 10 * count <= bytes_max
        assert not [turn for turn in record.turns if after < turn < cut.end]
        after, cut = cut.end, cut_batch(index, record, cut.end, end, limits)
    assert after == end
