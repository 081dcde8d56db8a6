"""The oracle on small pasts: what is right passes, and every kind of wrong row is named."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from penstock.errors import BadCall
from penstock_lab.oracle import Checked, check
from penstock_lab.queries import Query, named
from support.fake_log import Past

BIDS = (
    "auction bigint, bidder bigint, price bigint, channel string, url string, "
    "date_time timestamp, extra string, sent_at timestamp"
)
TASKS = "job bigint, event_type int, category int, cpu float, at timestamp, sent_at timestamp"


def at(second: float) -> dt.datetime:
    return dt.datetime.fromtimestamp(second, dt.UTC)


def bid(auction: int, second: float, price: int = 100, extra: str = "") -> dict[str, Any]:
    row = {"auction": auction, "bidder": 1, "price": price, "channel": "c", "url": "u"}
    return {**row, "date_time": at(second), "extra": extra, "sent_at": at(1_000 + second)}


def past(query: Query, **inputs: str) -> Past:
    made = Past()
    for stream, ddl in inputs.items():
        made.create(stream, ddl)
    for stage in query.stages:
        made.create(stage.name, stage.columns)
    return made


def checked(query: Query, made: Past) -> Checked:
    return check(query, made.client(), {stage.name: stage.name for stage in query.stages})


def said(verdict: Checked) -> list[tuple[int | None, str]]:
    return [(difference.batch, difference.kind) for difference in verdict.differences]


MISSING, EXCESS = "expected but not committed", "committed but not expected"


def selected(auction: int, second: float, price: int = 100) -> dict[str, Any]:
    return {"auction": auction, "price": price, "sent_at": at(1_000 + second)}


def two_batches(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> Checked:
    """Q2 over three bids on auction 123, read in two batches."""
    query = named("q2")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(123, 1), bid(7, 2)])
    made.mark("q2", first, bids=position)
    position = made.append("bids", [bid(123, 3), bid(123, 3)])
    made.mark("q2", second, bids=position)
    return checked(query, made)


def test_rows_that_are_right_pass_in_any_order() -> None:
    verdict = two_batches([selected(123, 1)], [selected(123, 3), selected(123, 3)])
    assert verdict.is_right
    assert (verdict.batches, verdict.rows) == ({"q2": 2}, 3)
    assert str(verdict) == "3 rows in 2 batches, all right"


def test_a_missing_row_is_named_with_batch_and_marker() -> None:
    verdict = two_batches([selected(123, 1)], [selected(123, 3)])
    assert (verdict.different, said(verdict)) == (1, [(1, MISSING)])
    assert "q2, batch 1 (marker 4): expected but not committed auction=123" in str(verdict)


def test_a_row_committed_twice_is_found() -> None:
    verdict = two_batches([selected(123, 1)] * 2, [selected(123, 3)] * 2)
    assert said(verdict) == [(0, EXCESS)]


def test_a_wrong_value_is_missing_and_unexpected() -> None:
    verdict = two_batches([selected(123, 1, price=101)], [selected(123, 3)] * 2)
    assert (verdict.different, sorted(said(verdict))) == (1, [(0, EXCESS), (0, MISSING)])


def test_a_row_in_another_batch_is_wrong_although_the_end_is_right() -> None:
    verdict = two_batches([], [selected(123, 1), selected(123, 3), selected(123, 3)])
    assert sorted(said(verdict)) == [(0, MISSING), (1, EXCESS)]


def test_rows_of_another_writer_are_found() -> None:
    query = named("q2")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(123, 1)])
    made.append("q2", [selected(5, 5)])
    made.mark("q2", [selected(123, 1)], bids=position)
    assert said(checked(query, made)) == [(0, EXCESS)]


def test_a_query_that_has_committed_nothing_is_right_and_empty() -> None:
    query = named("q5")
    verdict = checked(query, past(query, bids=BIDS))
    assert (verdict.is_right, verdict.batches, verdict.rows) == (True, {"q5": 0}, 0)


def test_rows_past_the_last_batch_are_found_once_the_query_has_ended() -> None:
    query = named("q2")
    made = past(query, bids=BIDS)
    made.mark("q2", [selected(123, 1)], bids=made.append("bids", [bid(123, 1)]))
    made.append("bids", [bid(123, 2)])
    made.append("q2", [selected(123, 2), selected(123, 2)])
    assert checked(query, made).is_right
    verdict = check(query, made.client(), {"q2": "q2"}, has_ended=True)
    assert verdict.different == 3
    assert said(verdict) == [
        (None, "no batch has read from bids"),
        *[(None, "no marker names")] * 2,
    ]
    assert "q2, past its last batch: no marker names auction=123" in str(verdict)


def test_without_a_batch_every_row_of_a_query_that_has_ended_differs() -> None:
    query = named("q2")
    made = past(query, bids=BIDS)
    made.append("q2", [selected(123, 2)])
    assert check(query, made.client(), {"q2": "q2"}, has_ended=True).different == 1


def last_bid(second: float, extra: str, sent: float) -> dict[str, Any]:
    return {**bid(1, second, extra=extra), "sent_at": at(1_000 + sent)}


def test_a_view_may_repeat_a_row_but_must_have_every_change() -> None:
    query = named("q18")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(1, 1, extra="b"), bid(1, 1, extra="a")])
    made.mark("q18", [last_bid(1, "a", 1)], bids=position)
    made.mark("q18", [last_bid(1, "a", 1)], bids=position)
    position = made.append("bids", [bid(1, 5)])
    made.mark("q18", [last_bid(5, "", 5)], bids=position)
    assert checked(query, made).is_right
    position = made.append("bids", [bid(1, 6)])
    made.mark("q18", [], bids=position)
    assert said(checked(query, made)) == [(3, MISSING)]


def test_the_greater_of_two_bids_in_one_instant_is_not_the_last() -> None:
    query = named("q18")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(1, 1, extra="b"), bid(1, 1, extra="a")])
    made.mark("q18", [last_bid(1, "b", 1)], bids=position)
    assert not checked(query, made).is_right


def test_a_key_twice_in_a_batch_is_found() -> None:
    query = named("q18")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(1, 1)])
    made.mark("q18", [last_bid(1, "", 1)] * 2, bids=position)
    assert (0, "committed twice in one batch") in said(checked(query, made))


def hot(start: int, auction: int, bids: int, sent: int) -> dict[str, Any]:
    window = {"starts_at": at(start), "ends_at": at(start + 10)}
    return {**window, "auction": auction, "bids": bids, "sent_at": at(1_000 + sent)}


def windows(close_early: bool = False, drop_tie: bool = False) -> Checked:
    """Q5 over bids at 100 s and 101 s, closed by one at 115 s in a later batch.

    time line       92 ... 100 101 ... 110 111 | 115 (event time is then 111 in the next batch)
    windows         [92,102) to [100,110) have both auctions, and all but [102,112) are closed
    """
    query = named("q5")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(1, 100), bid(2, 101)])
    rows = [
        hot(start, auction, 1, 100 + auction - 1)
        for start in range(92, 101, 2)
        for auction in (1, 2)
    ]
    if drop_tie:
        rows.pop()
    made.mark("q5", rows if close_early else [], bids=position)
    position = made.append("bids", [bid(3, 115)])
    made.mark("q5", [], bids=position)
    made.mark("q5", [] if close_early else rows, bids=position)
    return checked(query, made)


def test_windows_are_written_when_event_time_has_passed_them() -> None:
    assert windows().is_right


def test_windows_written_before_they_could_close_are_found() -> None:
    verdict = windows(close_early=True)
    assert verdict.different == 10
    assert {batch for batch, kind in said(verdict) if kind == EXCESS} == {0}


def test_a_dropped_tie_is_found() -> None:
    verdict = windows(drop_tie=True)
    assert said(verdict) == [(2, MISSING)]
    assert verdict.differences[0].row["auction"] == 2


def test_a_late_row_is_not_expected() -> None:
    query = named("q5")
    made = past(query, bids=BIDS)
    position = made.append("bids", [bid(1, 100)])
    made.mark("q5", [], bids=position)
    position = made.append("bids", [bid(1, 200)])
    made.mark("q5", [], bids=position)
    closed = [hot(start, 1, 1, 100) for start in range(92, 101, 2)]
    made.mark("q5", closed, bids=position)
    # Event time was 196 s at the start of the batch before: the row is dropped.
    position = made.append("bids", [bid(9, 150)])
    made.mark("q5", [], bids=position)
    position = made.append("bids", [bid(1, 300)])
    made.mark("q5", [], bids=position)
    later = [hot(start, 1, 1, 200) for start in range(192, 201, 2)]
    made.mark("q5", later, bids=position)
    assert checked(query, made).is_right


def test_sorted_rows_out_of_order_are_found() -> None:
    query = named("cm_category_60_tumbling")
    stage = query.stages[0].name
    made = past(query, tasks=TASKS)
    task = {"job": 1, "event_type": 1, "at": at(10), "sent_at": at(10)}
    tasks = [{**task, "category": category, "cpu": 0.5 - category / 10} for category in (0, 1)]
    position = made.append("tasks", [*tasks, {**task, "category": 2, "cpu": 0.5, "at": at(200)}])
    made.mark(stage, [], tasks=position)
    row = {"starts_at": at(0), "sent_at": at(10)}
    ranked = [
        {**row, "rank": 1, "category": 1, "cpu": Decimal("0.400000")},
        {**row, "rank": 2, "category": 0, "cpu": Decimal("0.500000")},
    ]
    made.mark(stage, ranked[::-1], tasks=position)
    assert {kind for _, kind in said(checked(query, made))} == {"committed out of order"}


def totals(*cpu: str) -> list[dict[str, Any]]:
    """The windows of 60 s that slide by 10 s which a task at 10 s is in, each with its sum."""
    return [
        {"starts_at": at(start), "category": 1, "cpu": Decimal(total), "sent_at": at(10)}
        for start in range(-40, 11, 10)
        for total in cpu
    ]


@pytest.mark.parametrize(
    ("second", "differences"),
    [("0.700000", set()), ("0.200000", {MISSING, EXCESS})],
)
def test_in_complete_mode_every_batch_writes_all_sums_since_the_start(
    second: str, differences: set[str]
) -> None:
    query = named("cm_category_60_10_complete")
    stage = query.stages[0].name
    made = past(query, tasks=TASKS)
    task = {"job": 1, "event_type": 1, "at": at(10), "sent_at": at(10), "category": 1}
    position = made.append("tasks", [{**task, "cpu": 0.5}])
    made.mark(stage, totals("0.500000"), tasks=position)
    position = made.append("tasks", [{**task, "cpu": 0.2}])
    made.mark(stage, totals(second), tasks=position)
    assert {kind for _, kind in said(checked(query, made))} == differences


def test_every_stage_needs_the_id_of_its_query() -> None:
    with pytest.raises(BadCall, match="no query for q4_changes; give one for each stage of q4"):
        check(named("q4"), Past().client(), {"q4": "id"})
