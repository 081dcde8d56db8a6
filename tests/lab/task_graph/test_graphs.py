"""The operators of the task graphs, fed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph import q4, q8
from penstock_lab.baselines.task_graph.graph import Operator, Task
from penstock_lab.baselines.task_graph.messages import Row
from penstock_lab.baselines.task_graph.registry import GRAPHS, graph_named
from penstock_lab.baselines.task_graph.state import State


def fed(operator: Operator, state: State, *rows: Row) -> list[Any]:
    out: list[Any] = []
    operator.process(rows, state, lambda key, row: out.append(row))
    return out


def auction(number: int, category: int = 10, opens: int = 100, ends: int = 200) -> Row:
    return (q4.AUCTION, number, category, opens, ends, 1)


def bid(number: int, price: int, at: int = 150, sent: int = 2) -> Row:
    return (q4.BID, number, price, at, sent)


def test_a_rise_of_the_highest_bid_is_written_and_nothing_else() -> None:
    out = fed(q4.Highest(), State(), auction(1), bid(1, 5), bid(1, 3), bid(1, 9, sent=7))
    assert out == [(1, 10, 5, 1, 2), (1, 10, 4, 0, 7)]


def test_a_bid_outside_its_auction_does_not_count_and_its_ends_do() -> None:
    rows = (auction(1), bid(1, 9, at=99), bid(1, 4, at=100), bid(1, 8, at=201), bid(1, 6, at=200))
    assert [row[2] for row in fed(q4.Highest(), State(), *rows)] == [4, 2]


def test_bids_that_come_before_their_auction_wait_for_it() -> None:
    state = State()
    assert fed(q4.Highest(), state, bid(1, 5, sent=9), bid(1, 7, sent=8)) == []
    assert fed(q4.Highest(), state, auction(1)) == [(1, 10, 7, 1, 9)]
    assert not state.table("early")


def test_closed_auctions_and_bids_that_wait_in_vain_are_dropped() -> None:
    state = State()
    fed(q4.Highest(), state, auction(1), auction(2, ends=900), bid(3, 5), bid(4, 5, at=800))
    q4.Highest().sweep(500, state)
    assert (set(state.table("open")), set(state.table("early"))) == ({2}, {4})


def test_every_row_of_a_mean_has_the_next_number() -> None:
    state = State()
    first = fed(q4.Mean(), state, (1, 10, 6, 1, 1), (2, 10, 2, 1, 2), (5, 11, 3, 1, 3))
    assert first == [(10, 6.0, 1, 1), (10, 4.0, 2, 2), (11, 3.0, 1, 3)]
    assert fed(q4.Mean(), state, (1, 10, 4, 0, 4)) == [(10, 6.0, 3, 4)]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_person_is_written_once_when_both_have_come_in_one_window(order: tuple[int, int]) -> None:
    rows = ((q8.PERSON, 7, "Ann", 1_000, 3), (q8.AUCTION, 7, None, 2_000, 5))
    again = (q8.AUCTION, 7, None, 3_000, 9)
    out = fed(q8.Join(), State(), *(rows[n] for n in order), again)
    assert out == [(7, "Ann", 0, 5)]


def test_an_auction_in_another_window_makes_nobody_a_new_seller() -> None:
    late = (q8.AUCTION, 7, None, q8.WINDOW_US, 5)
    assert fed(q8.Join(), State(), (q8.PERSON, 7, "Ann", 1_000, 3), late) == []


def test_a_window_that_is_over_leaves_no_state() -> None:
    state = State()
    fed(q8.Join(), state, (q8.PERSON, 7, "Ann", 1, 3), (q8.PERSON, 8, "Bo", q8.WINDOW_US, 3))
    q8.Join().sweep(q8.WINDOW_US, state)
    assert [name for name, _ in state.table("joined").values()] == ["Bo"]


def test_keys_fit_what_the_log_carries() -> None:
    state, again, now_us = State(), State(), 1_800_000_000_000_000
    fed(q8.Join(), state, (q8.PERSON, 2**31, "Ann", now_us, now_us))
    again.restore(state.snapshot())
    assert len(again) == 1


@pytest.mark.parametrize("name", GRAPHS)
def test_every_stream_is_read_by_as_many_tasks_as_it_has_substreams(name: str) -> None:
    graph = graph_named(name)
    tags = {tag for stage in graph.stages for tag in graph.tags("r", stage.reads)}
    assert len(tags) == len(graph.tasks("r"))
    assert graph.producers("r", graph.source) == ()
    assert Task("r", "split", 0).name in graph.producers("r", graph.stages[1].reads)


def test_an_unknown_graph_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadCall, match=r"no task graph 'q9'; there is q4, q8"):
        graph_named("q9")
