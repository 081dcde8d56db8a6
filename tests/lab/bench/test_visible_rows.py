"""Input rows by the batch that took them: latencies, batch times, the way back under a bound."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.model.ids import BatchId, Instance, Lsn
from penstock.model.query_answers import MarkerLine
from penstock_lab.experiment.batch_times import Timed, timed
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.visible_rows import (
    Span,
    batch_maxima_ms,
    batch_rows,
    busy_share,
    miss_ratio,
    recovery,
    spans,
    throughput,
    under_way_ms,
    within,
)
from penstock_lab.workloads.seeded import STAMP


class Log:
    """A stream whose rows are one commit each, at positions 1, 2, 3, sent a second apart."""

    def __init__(self, rows: int) -> None:
        self.sent_us = np.arange(rows) * 1_000_000

    def position(self, stream: str, *, at: str) -> int:
        return 0 if at == "earliest" else len(self.sent_us)

    def read(self, stream: str, after: int, until: int) -> pa.Table:
        return pa.table({"sent_at": pa.array(self.sent_us[after:until]).cast(STAMP)})


def marker(batch: int, position: int, at_ms: int) -> MarkerLine:
    positions = {"reports": Lsn(position)}
    return MarkerLine(Lsn(9), BatchId(batch), Instance(1), at_ms, positions, "append", 0)


def sightings(*batches: tuple[int, int]) -> list[Sighting]:
    """Batches of one row each: when it was sent and when it was seen, in milliseconds."""
    return [Sighting(seen * 1000, np.array([sent * 1000])) for sent, seen in batches]


def test_each_row_is_seen_with_the_marker_of_the_batch_that_took_it() -> None:
    # position   1     2     3     4      (5 is not committed)
    # marker    [ 0 ][ 1 ]  [   2    ]
    markers = [marker(0, 0, 500), marker(1, 2, 2_500), marker(2, 2, 2_600), marker(3, 4, 5_000)]
    taken = batch_rows(Log(5), "reports", markers)  # type: ignore[arg-type]
    assert [(rows.batch, rows.sighting.seen_us) for rows in taken] == [
        (1, 2_500_000),
        (3, 5_000_000),
    ]
    assert [rows.sighting.sent_us.tolist() for rows in taken] == [
        [0, 1_000_000],
        [2_000_000, 3_000_000],
    ]


def test_a_batch_lasts_from_its_cut_to_its_marker_and_not_from_its_wait_for_rows() -> None:
    # began 1,000, held for 400, cut 1,400, marker 2,000
    batches = [
        Timed(0, 1_000, 2, 700.0, 1.0, admission_ms=400.0, planning_ms=30.0),
        Timed(1, 2_500, 0, 9.0, 0.0),
    ]
    markers = [marker(0, 2, 2_000), marker(1, 2, 2_600)]
    taken = batch_rows(Log(2), "reports", markers)  # type: ignore[arg-type]
    first, second = spans(batches, markers, taken, {0: (250.0, 20.0)})
    assert (first.cut_ms, first.visible_ms, first.took_ms, first.rows) == (
        1_400.0,
        2_000.0,
        600.0,
        2,
    )
    assert (first.planning_ms, first.tasks_ms) == (30.0, 250.0)
    assert (first.oldest_ms, first.queued_ms) == (2_000.0, 20.0)
    assert (second.rows, second.took_ms) == (0, 100.0)
    assert within([first, second], 1_400.0, 2_500.0) == [first]


def test_a_batch_that_spark_reported_while_it_waited_for_rows_is_one_batch() -> None:
    waiting, itself = Timed(0, 500, 0, 10.0, 0.0), Timed(0, 1_000, 2, 700.0, 1.0)
    markers = [marker(0, 2, 2_000)]
    taken = batch_rows(Log(2), "reports", markers)  # type: ignore[arg-type]
    (span,) = spans([waiting, itself], markers, taken, {})
    assert (span.cut_ms, span.rows) == (1_000.0, 2)


def test_the_wait_for_rows_is_read_from_sparks_progress() -> None:
    duration = {"triggerExecution": 700, "latestOffset": 400, "walCommit": 1, "queryPlanning": 20}
    batch = timed(
        {
            "batchId": 3,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "numInputRows": 5,
            "durationMs": duration,
            "stateOperators": [],
            "sources": [{"metrics": {"penstock.predictedMs": "321.5"}}],
        }
    )
    assert (batch.admission_ms, batch.planning_ms, batch.predicted_ms) == (400.0, 21.0, 321.5)


def test_throughput_is_rows_over_batch_time_and_batches_without_rows_cost_theirs() -> None:
    each = [Span(0, 0.0, 500.0, 100), Span(1, 600.0, 1_100.0, 0)]
    assert throughput(each) == 100.0
    assert throughput(each[1:]) is None


def test_time_in_which_batches_overlap_is_under_way_once() -> None:
    #           0    100   200   300   400   500   600
    # batch 0        [-----------]
    # batch 1              [----------]               cut before batch 0 is visible
    # batch 2              [-]                        within the other two
    # batch 3                                [------]
    each = [
        Span(0, 100.0, 300.0, 10),
        Span(1, 200.0, 400.0, 10),
        Span(2, 200.0, 250.0, 0),
        Span(3, 500.0, 600.0, 10),
    ]
    assert under_way_ms(each) == 400.0
    assert busy_share(each, 0.0, 800.0) == pytest.approx(0.5)
    assert busy_share(each, 250.0, 350.0) == 1.0, "never more than all of the time"
    assert busy_share(each, 350.0, 550.0) == pytest.approx(0.5)
    assert busy_share(each, 700.0, 800.0) == 0.0
    assert busy_share([], 0.0, 800.0) is None
    assert throughput(each) == pytest.approx(30 / 0.55), "each batch with its own time"


def test_misses_are_the_share_of_rows_later_than_the_deadline() -> None:
    assert miss_ratio(np.array([900.0, 1_000.0, 1_100.0, 2_000.0]), 1.0) == 0.5
    assert miss_ratio(np.array([]), 1.0) is None


def test_the_papers_measure_is_the_longest_latency_of_each_batch() -> None:
    seen = [
        Sighting(5_000_000, np.array([1_000_000, 4_000_000])),
        Sighting(9_000_000, np.array([7_000_000])),
    ]
    assert batch_maxima_ms(seen, 0).tolist() == [4_000.0, 2_000.0]
    assert batch_maxima_ms(seen, 1_500_000).tolist() == [1_000.0, 2_000.0]


def test_it_is_back_with_the_last_batch_above_the_deadline_after_the_burst() -> None:
    # calm from 0, burst 10 s to 15 s, deadline 1 s
    seen = sightings((4_000, 4_800), (11_000, 13_000), (16_000, 21_000), (22_000, 22_500))
    back = recovery(seen, 0, 10_000_000, 15_000_000, 1.0)
    assert back is not None
    assert (back.back_s, back.is_back, back.level_ms, back.worst_ms) == (
        6.0,
        True,
        1_000.0,
        5_000.0,
    )


def test_who_is_above_the_deadline_in_the_calm_is_held_against_its_calm() -> None:
    seen = sightings((4_000, 6_500), (11_000, 16_000), (20_000, 22_400))
    back = recovery(seen, 0, 10_000_000, 15_000_000, 1.0)
    assert back is not None
    assert back.level_ms == 2_500.0
    assert back.back_s == pytest.approx(1.0)
    assert back.is_back


def test_who_does_not_come_back_says_so_and_who_was_never_off_took_no_time() -> None:
    never = recovery(sightings((11_000, 16_000), (17_000, 30_000)), 0, 10_000_000, 15_000_000, 1.0)
    assert never is not None
    assert (never.is_back, never.back_s) == (False, 15.0)
    steady = recovery(sightings((11_000, 11_500)), 0, 10_000_000, 15_000_000, 1.0)
    assert steady is not None
    assert (steady.is_back, steady.back_s) == (True, 0.0)
    assert recovery([], 0, 10_000_000, 15_000_000, 1.0) is None
