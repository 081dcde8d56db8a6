"""Task graphs whose workers and coordinators are killed: the answers are DuckDB's all the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.clock import SYSTEM_CLOCK
from penstock.testing.nats_servers import NatsServers, nats_program
from penstock_lab.baselines.task_graph.graph_process import GraphRun, LogProcess, Plan, sent_by
from penstock_lab.baselines.task_graph.registry import Protocol
from penstock_lab.baselines.task_graph.sources import load_of
from penstock_lab.measure.task_graph_answers import Checked, check
from penstock_lab.processes import JobChild
from support.servers.processes import wait_until
from support.skip_reasons import NO_NATS

RATES = {"q4": 1_000, "q8": 6_000}
SECONDS, SEED, TICK_MS = 3.0, 11, 10
TURNS = 10
NUMBERS = itertools.count()
Kill = Callable[[GraphRun], None]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogProcess]:
    made = LogProcess(tmp_path_factory.mktemp("log"), "embedded")
    yield made
    made.stop()


def answered(
    log: LogProcess, graph: str, protocol: Protocol, *kills: Kill, turns: int = TURNS
) -> Checked:
    """Feed the graph on two workers, kill in the middle, and check everything that was seen.

    A busy machine may rest for longer than it takes to count as quiet: what is wrong then is
    looked at once more, `turns` times at most.
    """
    plan = Plan(graph, protocol, f"k{next(NUMBERS)}", 20, workers=2, checkpoint_s=0.5)
    graph_run = GraphRun(plan, log)
    try:
        sender = graph_run.sender(RATES[graph], SECONDS, seed=SEED, tick_ms=TICK_MS)
        sender.tell(b"go")
        for kill in kills:
            SYSTEM_CLOCK.sleep(SECONDS / (len(kills) + 1))
            wait_until("something is under way", lambda: graph_run.look().rows > 0)
            kill(graph_run)
        sent_by(sender)
        load = load_of(graph, RATES[graph], SECONDS, SEED, TICK_MS)
        for _ in range(turns):
            assert graph_run.wait_quiet(1.5, 120)
            checked = check(graph, load, graph_run.seen())
            if not checked.differences:
                break
    finally:
        graph_run.stop()
    return checked


def first(graph_run: GraphRun) -> None:
    graph_run.kill_worker(0)


def second(graph_run: GraphRun) -> None:
    graph_run.kill_worker(1)


def coordinator(graph_run: GraphRun) -> None:
    graph_run.kill_coordinator()


@pytest.mark.parametrize("graph", RATES)
@pytest.mark.parametrize("protocol", ["marker", "transaction", "aligned"])
def test_a_killed_worker_costs_no_row_and_repeats_none(
    log: LogProcess, graph: str, protocol: Protocol
) -> None:
    checked = answered(log, graph, protocol, first, second)
    assert checked.rows > 100
    assert checked.differences == []


def test_a_killed_coordinator_finishes_what_it_had_prepared(log: LogProcess) -> None:
    checked = answered(log, "q4", "transaction", coordinator, first, coordinator)
    assert checked.rows > 100
    assert checked.differences == []


@pytest.mark.parametrize("protocol", ["marker", "transaction"])
def test_a_worker_that_wakes_up_after_it_was_replaced_ends_and_leaves_no_trace(
    log: LogProcess, protocol: Protocol
) -> None:
    zombies: list[JobChild] = []

    def freeze(graph_run: GraphRun) -> None:
        zombies.append(graph_run.freeze_worker(1))

    def wake(graph_run: GraphRun) -> None:
        zombies[0].wake()
        assert zombies[0].wait_end(60) == 1

    checked = answered(log, "q4", protocol, freeze, wake)
    assert checked.rows > 100
    assert checked.differences == []


@pytest.mark.parametrize("graph", RATES)
def test_without_a_protocol_the_answer_is_right_if_nothing_is_killed(
    log: LogProcess, graph: str
) -> None:
    assert answered(log, graph, "unsafe").differences == []


def test_without_a_protocol_a_kill_shows_in_the_answer(log: LogProcess) -> None:
    assert answered(log, "q4", "unsafe", first, turns=1).different > 0


@pytest.mark.skipif(nats_program() is None, reason=NO_NATS)
@pytest.mark.parametrize("protocol", ["marker", "transaction", "aligned"])
def test_a_killed_worker_costs_nothing_on_jetstream_either(
    tmp_path: Path, protocol: Protocol
) -> None:
    with NatsServers(tmp_path / "nats") as servers:
        made = LogProcess(tmp_path, servers.url)
        try:
            checked = answered(made, "q4", protocol, first)
        finally:
            made.stop()
    assert checked.rows > 100
    assert checked.differences == []
