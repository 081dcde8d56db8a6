"""The events a task graph is fed."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import q4, q8
from penstock_lab.baselines.task_graph.messages import Rows, decode
from penstock_lab.baselines.task_graph.sources import load_of, stamped, ticks


def test_rows_carry_the_time_they_were_meant_to_be_sent_before_their_padding() -> None:
    made = ticks("q4", load_of("q4", 1_000, 0.1, seed=7, tick_ms=10))
    assert [tick.due_us for tick in made] == list(range(0, 100_000, 10_000))
    batch = decode(stamped(made[1], 5_000))
    assert isinstance(batch, Rows)
    assert isinstance(batch.rows, list)
    assert {row[-2] for row in batch.rows} == {5_000}
    assert all(isinstance(row[-1], str) for row in batch.rows)
    assert batch.clock_us == max(row[3] for row in batch.rows)


def test_a_query_is_sent_what_it_reads_and_nothing_else() -> None:
    rows = [row for tick in ticks("q4", load_of("q4", 1_000, 1.0, 7, 10)) for row in tick.rows]
    kinds = [row[0] for row in rows]
    assert (kinds.count(q4.AUCTION), kinds.count(q4.BID)) == (60, 920)
    rows = [row for tick in ticks("q8", load_of("q8", 1_000, 1.0, 7, 10)) for row in tick.rows]
    kinds = [row[0] for row in rows]
    assert (kinds.count(q8.PERSON), kinds.count(q8.AUCTION)) == (20, 60)


def test_a_query_without_a_source_is_refused() -> None:
    with pytest.raises(BadCall, match="no source for 'q5'"):
        load_of("q5", 1_000, 1.0, 7, 10)


def test_a_second_load_goes_on_where_the_first_has_ended() -> None:
    whole = ticks("q8", load_of("q8", 1_000, 2.0, 7, 100))
    first = ticks("q8", load_of("q8", 1_000, 1.0, 7, 100))
    second = ticks("q8", load_of("q8", 1_000, 1.0, 7, 100, first=1_000))
    assert [t.rows for t in (*first, *second)] == [t.rows for t in whole]
    assert second[0].clock_us > first[-1].clock_us


def test_auctions_stay_open_as_long_as_they_are_to() -> None:
    def mean_s(open_s: float) -> float:
        made = ticks("q4", load_of("q4", 1_000, 2.0, 7, 100, open_s=open_s))
        rows = [row for tick in made for row in tick.rows if row[0] == q4.AUCTION]
        each = [float(str(row[4])) - float(str(row[3])) for row in rows]
        return sum(each) / len(each) / 1e6

    assert mean_s(0.0) < 5
    assert 60 < mean_s(120.0) < 180
