"""Which batches count, and what is made of them."""

from __future__ import annotations

import pytest

from penstock.errors import TryAgain
from penstock_lab.experiment.phases import Batch, batch_of, timing


def batch(number: int, ms: int, rows: int = 5_000) -> Batch:
    return Batch(number, rows, {"triggerExecution": ms, "addBatch": ms - 10, "walCommit": 4})


def test_warm_up_and_short_batches_do_not_count() -> None:
    batches = [batch(0, 9_000), batch(1, 1, rows=0), batch(2, 100), batch(3, 200), batch(4, 300)]
    timed = timing(batches, rows=5_000, warm_up=1, count=3)
    assert timed.batches == 3
    assert timed.trigger_ms_p50 == 200
    assert timed.trigger_ms_p99 == 300


def test_batches_beyond_those_asked_for_do_not_count() -> None:
    batches = [batch(n, 100) for n in range(4)] + [batch(4, 9_000)]
    assert timing(batches, rows=5_000, warm_up=1, count=3).trigger_ms_p99 == 100


def test_phases_come_in_the_order_they_happen() -> None:
    timed = timing([batch(n, 100) for n in range(3)], rows=5_000, warm_up=0, count=3)
    assert timed.phases_ms == {"walCommit": 4, "addBatch": 90}
    assert list(timed.phases_ms) == ["walCommit", "addBatch"]


def test_too_few_batches_are_an_error_not_a_figure() -> None:
    with pytest.raises(TryAgain, match="2 batches of 5000 rows"):
        timing([batch(0, 1), batch(1, 1)], rows=5_000, warm_up=1, count=2)


def test_a_progress_is_read_as_spark_reports_it() -> None:
    progress = {
        "batchId": 3,
        "numInputRows": 5_000,
        "durationMs": {"triggerExecution": 120, "addBatch": 90},
        "sources": [],
    }
    assert batch_of(progress) == Batch(3, 5_000, {"triggerExecution": 120, "addBatch": 90})
