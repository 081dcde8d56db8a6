"""Arrivals: rates and backlogs of rows and bytes, as far as a source tells them."""

from __future__ import annotations

import pytest

from penstock.admission.arrivals import Arrivals
from penstock.admission.offer import CutsBy, Offer, Waiting


def offer(rows: int | None, size_bytes: int | None = None, files: int | None = None) -> Offer:
    return Offer((Waiting(0, rows, size_bytes, files, 5.0, CutsBy.ROWS),), 2)


NOTHING = Offer((Waiting(0),), 2)


def test_a_backlog_that_is_taken_whole_each_time_does_not_grow() -> None:
    # rows waiting   1,000 ┐     1,000 ┐     1,000 ┐      a second of 1,000 rows, then a batch
    #                      └ 0 ──┘     └ 0 ──┘     └ ...
    arrivals = Arrivals()
    for second in range(20):
        now_ms = 1_000.0 * second
        arrivals.offered(offer(1_000), now_ms)
        arrivals.cut(1_000, None, now_ms)
        assert arrivals.rows.growth_per_ms == 0.0
        arrivals.offered(offer(500), now_ms + 500.0)
        assert arrivals.rows.growth_per_ms == 0.0
    assert arrivals.rows.per_ms == pytest.approx(1.0, rel=0.01)


def test_a_backlog_grows_by_what_is_left_behind_and_ends_when_nothing_waits() -> None:
    arrivals, waiting = Arrivals(), 0
    for second in range(30):
        waiting += 1_000
        arrivals.offered(offer(waiting), 1_000.0 * second)
        arrivals.cut(700, None, 1_000.0 * second)
        waiting -= 700
    assert arrivals.rows.growth_per_ms == pytest.approx(0.3, rel=0.01)
    assert arrivals.rows.per_ms == pytest.approx(1.0, rel=0.01)
    arrivals.offered(NOTHING, 31_000.0)
    assert (arrivals.rows.waiting, arrivals.rows.growth_per_ms) == (0, 0.0)


def test_what_a_source_does_not_tell_is_unknown_and_not_nothing() -> None:
    arrivals = Arrivals()
    assert (arrivals.unit, arrivals.rows.waiting) == ("rows", 0)
    arrivals.offered(offer(None, 5_000_000_000, 3), 0.0)
    assert arrivals.unit == "bytes"
    assert (arrivals.rows.waiting, arrivals.bytes.waiting, arrivals.files.waiting) == (
        None, 5_000_000_000, 3,
    )  # fmt: skip
    arrivals.offered(NOTHING, 10.0)
    assert (arrivals.rows.waiting, arrivals.bytes.waiting, arrivals.files.waiting) == (None, 0, 0)
    arrivals.offered(offer(7, 500), 20.0)
    assert (arrivals.unit, arrivals.rows.waiting, arrivals.files.waiting) == ("rows", 7, None)
