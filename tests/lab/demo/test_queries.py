"""The demo's queries before the oracle: silent over right answers, loud over every wrong one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

from penstock_lab.demo.queries import BIDS, CATEGORIES, query
from penstock_lab.oracle import Checked, check
from penstock_lab.workloads.demo_bids import DemoBids, DemoBidsOptions
from penstock_lab.workloads.traffic import stamped
from support.fake_log import Past

QUERY = query()
TOTALS, LEADERS = (stage.name for stage in QUERY.stages)
BIDS_DDL = "auction bigint, bidder bigint, price bigint, at timestamp, sent_at timestamp"
BATCHES = 6
BATCH_ROWS = 300

Row: TypeAlias = dict[str, Any]
Batch: TypeAlias = list[Row]


def bids_of(batch: int) -> Batch:
    made = DemoBids(DemoBidsOptions(auctions=40)).events(batch * BATCH_ROWS, BATCH_ROWS)
    return list(pa.Table.from_batches([stamped(made, batch + 1)]).to_pylist())


def right_totals(inputs: list[Batch]) -> list[Batch]:
    """What a correct first query commits, computed in the plainest way."""
    seen: dict[int, Batch] = defaultdict(list)
    batches = []
    for rows in inputs:
        for row in rows:
            seen[row["auction"]].append(row)
        touched = sorted({row["auction"] for row in rows})
        batches.append([total(auction, seen[auction]) for auction in touched])
    return batches


def total(auction: int, rows: Batch) -> Row:
    prices = [row["price"] for row in rows]
    sent_at = max(row["sent_at"] for row in rows)
    answer = {"auction": auction, "bids": len(rows), "total": sum(prices), "highest": max(prices)}
    return {**answer, "sent_at": sent_at}


def right_leaders(inputs: list[Batch]) -> list[Batch]:
    """What a correct second query commits over the batches of the first."""
    seen: dict[int, Batch] = defaultdict(list)
    batches = []
    for rows in inputs:
        for row in rows:
            seen[row["auction"] % CATEGORIES].append(row)
        touched = sorted({row["auction"] % CATEGORIES for row in rows})
        batches.append(
            [
                {
                    "category": category,
                    "highest": max(row["highest"] for row in seen[category]),
                    "sent_at": max(row["sent_at"] for row in seen[category]),
                }
                for category in touched
            ]
        )
    return batches


def committed(
    inputs: list[Batch],
    totals: list[Batch],
    leaders: list[Batch] | None = None,
    stray: tuple[Row, ...] = (),
) -> Checked:
    """The verdict over those batches; the second query reads each batch of the first by itself."""
    past = Past()
    past.create(BIDS, BIDS_DDL)
    for stage in QUERY.stages:
        past.create(stage.name, stage.columns)
    for read, total_rows, leader_rows in zip(
        inputs, totals, leaders if leaders is not None else right_leaders(totals), strict=True
    ):
        position = past.mark(TOTALS, total_rows, bids=past.append(BIDS, read))
        past.mark(LEADERS, leader_rows, auction_totals=position)
    if stray:
        past.append(LEADERS, stray)
    return check(QUERY, past.client(), {TOTALS: TOTALS, LEADERS: LEADERS}, has_ended=True)


INPUTS = [bids_of(batch) for batch in range(BATCHES)]


def planted(batch: int, change: Callable[[Batch], Batch]) -> list[Batch]:
    """The right totals with one batch changed."""
    totals = right_totals(INPUTS)
    totals[batch] = change(totals[batch])
    return totals


def test_right_answers_pass_and_every_row_is_counted() -> None:
    totals = right_totals(INPUTS)
    checked = committed(INPUTS, totals)
    assert checked.is_right, str(checked)
    assert checked.stages[TOTALS].rows == sum(map(len, totals))
    assert checked.stages[LEADERS].rows == sum(map(len, right_leaders(totals)))


def test_a_wrong_value_is_found_in_its_batch() -> None:
    def wrong(rows: Batch) -> Batch:
        return [{**rows[0], "total": rows[0]["total"] + 1}, *rows[1:]]

    checked = committed(INPUTS, planted(3, wrong))
    kinds = {difference.kind for difference in checked.differences if difference.batch == 3}
    assert checked.stages[TOTALS].different == 1
    assert checked.stages[LEADERS].different == 0
    assert kinds == {"expected but not committed", "committed but not expected"}
    assert str(checked.differences[0]).startswith(f"{TOTALS}, batch 3 (marker ")


@pytest.mark.parametrize(
    "change",
    [lambda rows: rows[1:], lambda rows: [*rows, rows[0]], lambda rows: []],
    ids=["a row is missing", "a row is there twice", "nothing was written"],
)
def test_missing_and_repeated_rows_are_found(change: Callable[[Batch], Batch]) -> None:
    assert committed(INPUTS, planted(2, change)).stages[TOTALS].different


def test_a_bid_counted_twice_is_found_in_every_later_answer_of_its_auction() -> None:
    doubled = [[*INPUTS[0], INPUTS[0][0]], *INPUTS[1:]]
    checked = committed(doubled, right_totals(INPUTS))
    auction = INPUTS[0][0]["auction"]
    answers = sum(any(row["auction"] == auction for row in rows) for rows in INPUTS)
    assert checked.stages[TOTALS].different == answers >= 1


def test_only_the_first_differences_are_kept_but_all_are_counted() -> None:
    checked = committed(INPUTS, [[] for _ in INPUTS])
    assert checked.stages[TOTALS].different == sum(map(len, right_totals(INPUTS)))
    assert len(checked.differences) == 20


def test_a_second_query_that_missed_a_batch_of_the_first_differs() -> None:
    totals = right_totals(INPUTS)
    leaders = right_leaders([*totals[:-1], []])
    assert committed(INPUTS, totals, leaders).stages[LEADERS].different > 0


def test_what_both_queries_have_wrong_alike_is_found_in_the_last_view() -> None:
    past = Past()
    past.create(BIDS, BIDS_DDL)
    for stage in QUERY.stages:
        past.create(stage.name, stage.columns)
    totals = right_totals(INPUTS)
    position = 0
    for read, rows in zip(INPUTS, totals, strict=True):
        position = past.mark(TOTALS, rows, bids=past.append(BIDS, read))
    # The second query claims to have read everything, and was shown half of it.
    half = right_leaders([[row for rows in totals for row in rows][::2]])[0]
    past.mark(LEADERS, half, auction_totals=position)
    checked = check(QUERY, past.client(), {TOTALS: TOTALS, LEADERS: LEADERS})
    assert checked.stages[LEADERS].different > 0


def test_rows_in_the_stream_that_no_marker_names_are_found() -> None:
    totals = right_totals(INPUTS)
    stray = tuple(right_leaders(totals)[-1][:2])
    checked = committed(INPUTS, totals, stray=stray)
    assert checked.stages[LEADERS].different == 2
    assert "no marker names" in str(checked)
