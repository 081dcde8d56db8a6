"""Event time as Spark keeps it: the least of the inputs, one batch behind, lost in restarts."""

from __future__ import annotations

from penstock_lab.oracle.watermarks import Marked, Progress, progress
from penstock_lab.queries import Watermark

BIDS = Watermark("bids", "date_time", 4_000)
AUCTIONS = Watermark("auctions", "date_time", 1_000)


def us(second: int) -> int:
    return second * 1_000_000


def marked(*instances: int) -> list[Marked]:
    return [Marked(batch, 10 + batch, instance) for batch, instance in enumerate(instances)]


def test_a_batch_sees_the_event_time_of_the_batches_before_it() -> None:
    batches = progress(marked(1, 1, 1), [BIDS], [{0: us(10), 1: us(20)}])
    # batch         0    1    2
    # newest row   10   20    -
    # watermark     0    6   16     late rows by: 0 0 6
    assert batches == [
        Progress(0, 10, 0, 0),
        Progress(1, 11, us(6), 0),
        Progress(2, 12, us(16), us(6)),
    ]


def test_event_time_does_not_go_back() -> None:
    batches = progress(marked(1, 1, 1), [BIDS], [{0: us(20), 1: us(10)}])
    assert [batch.watermark_us for batch in batches] == [0, us(16), us(16)]


def test_the_slowest_input_decides_and_one_without_rows_holds_all() -> None:
    batches = progress(
        marked(1, 1, 1, 1), [BIDS, AUCTIONS], [{0: us(20), 1: us(30)}, {1: us(12), 2: us(40)}]
    )
    assert [batch.watermark_us for batch in batches] == [0, 0, us(11), us(26)]


def test_after_a_restart_every_input_must_be_seen_again() -> None:
    newest = [{0: us(20), 1: us(30), 2: us(30)}, {0: us(20), 2: us(40)}]
    through = progress(marked(1, 1, 1, 1), [BIDS, AUCTIONS], newest)
    restarted = progress(marked(1, 2, 2, 2), [BIDS, AUCTIONS], newest)
    assert [batch.watermark_us for batch in through] == [0, us(16), us(19), us(26)]
    assert [batch.watermark_us for batch in restarted] == [0, us(16), us(16), us(26)]


def test_a_query_without_watermarks_has_none() -> None:
    assert progress(marked(1), [], []) == [Progress(0, 10, 0, 0)]


def test_a_part_of_a_millisecond_does_not_count() -> None:
    batches = progress(marked(1, 1), [BIDS], [{0: us(10) + 999}])
    assert batches[1].watermark_us == us(6)
