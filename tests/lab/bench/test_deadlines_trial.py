"""The deadlines suite before it runs and around benches that are made up: plan, rates, turns."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from penstock.admission.estimate.ours import FIRST_ROWS
from penstock.errors import BadCall, TryAgain
from penstock_lab.cli.bench import bench
from penstock_lab.experiment.joint_rig import JointBench
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.run import Trial
from penstock_lab.experiment.search import Tried
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.systems import SYSTEMS
from penstock_lab.experiment.together import PartNoted, Together, TogetherNoted, query_runs
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites import deadlines
from penstock_lab.suites.deadlines.cells import QUERIES, Plan
from penstock_lab.suites.deadlines.modes import MODES, PROCESSES
from penstock_lab.suites.deadlines.plans import plan_of
from penstock_lab.suites.deadlines.rates import (
    PUBLISHED,
    own_rate,
    rate_reasons,
    sustained_rate,
    traffic_rate,
)
from penstock_lab.suites.deadlines.record import Record, for_file
from penstock_lab.suites.deadlines.seats import Open
from penstock_lab.workloads import send
from penstock_lab.workloads.load import pieces
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
SMALL = msgspec.structs.replace(plan_of(quick=True), repeats=2, shocks=(), again_max=0)


def noted(conditions: Together, *, rising: bool) -> TogetherNoted:
    """A batch of one row every 100 ms, visible 100 ms after it was sent, or ever later."""
    count = int(conditions.seconds * 10)
    sent_ms = [STARTED_MS + 100 * n for n in range(count)]
    rows = [
        Sighting((at + 100 + (at - STARTED_MS) * rising) * 1000, np.array([at * 1000]))
        for at in sent_ms
    ]
    # Who falls behind has a batch under way all the time.
    waits_ms = 0.0 if rising else 40.0
    batches = [Span(n, at + waits_ms, at + 100.0, 1, 80, 5.0, 30.0) for n, at in enumerate(sent_ms)]
    sent = Sent(count, count, conditions.seconds, 0, 1.0, 1.0, 1.0, 1.0, 1.0, True)
    parts = {
        part.query: PartNoted(rows=rows, batches=batches, rows_checked=5)
        for part in conditions.parts
    }
    return TogetherNoted(parts, send.SenderReport(sent, STARTED_MS, [1.0] * 10), cpu_s=3.0)


class Fake:
    """A Spark process that sustains rates up to its limit: half of it with a deadline of 1 s."""

    def __init__(self, process: str, asked: list[tuple[str, Together]]) -> None:
        self.process, self.asked = process, asked
        self.limit = {"fifo": 2_100, "fair": 3_300, "edf": 5_000}.get(process, 9_999)

    def run_together(self, conditions: Together) -> TogetherNoted:
        self.asked.append((self.process, conditions))
        is_hurried = any(part.options.get("deadline") == "1000ms" for part in conditions.parts)
        limit = self.limit / 2 if is_hurried else self.limit
        return noted(conditions, rising=conditions.rate > limit)


def faking(asked: list[tuple[str, Together]], *, missing: str = "") -> Open:
    @contextlib.contextmanager
    def open_(plan: Plan, process: str, folder: Path) -> Iterator[JointBench]:
        if process == missing:
            raise TryAgain(f"{process} does not start", code="worker_failed")
        yield Fake(process, asked)

    return open_


def suite_with(opening: Open) -> Suite[Plan, Record]:
    runs = partial(deadlines.runs.runs, opening=opening)
    return dataclasses.replace(deadlines.SUITE, runs=runs, require=lambda plan: None)


def executed(plan: Plan, folder: Path, opening: Open) -> list[Record]:
    trial = Trial(suite_with(opening), plan, folder, lambda _: None)
    trial.execute()
    return trial.records


def test_high_traffic_is_nine_tenths_of_what_the_better_baseline_holds(tmp_path: Path) -> None:
    asked: list[tuple[str, Together]] = []
    records = executed(SMALL, tmp_path, faking(asked))
    held = {mode: held_in(records, mode, 5.0) for mode in ("sb-fifo", "sb-fair", "db-edf")}
    assert held["sb-fifo"] < held["sb-fair"] < held["db-edf"]
    rates = {record.run.rate for record in records if record.kind == "compared"}
    assert rates == {round(held["sb-fair"] * 0.9)}
    (reason,) = rate_reasons(SMALL, records)
    assert f"90% of {held['sb-fair']:,}/s" in reason


def held_in(records: list[Record], mode: str, deadline_s: float) -> int:
    """The highest rate that held in a search."""
    return max(
        r.run.rate
        for r in records
        if (r.kind, r.system, r.cell.deadline_s) == ("sustain", mode, deadline_s)
        and (r.run.slope_ms_per_s or 0) < 50
    )


def test_spare_is_seven_tenths_of_what_our_mode_holds_at_that_deadline(tmp_path: Path) -> None:
    records = executed(SMALL, tmp_path, faking([]))
    held = {bound: held_in(records, "db-edf", bound) for bound in SMALL.deadlines_s}
    assert held[1.0] < held[5.0]
    spare = {(r.cell.deadline_s, r.run.rate) for r in records if r.kind == "spare"}
    assert spare == {(bound, round(rate * 0.7)) for bound, rate in held.items()}


def test_a_deadline_at_which_no_rate_held_has_its_spare_below_all_that_were_tried() -> None:
    tried = {("db-edf", 1.0): (Tried(4_000, False), Tried(2_000, False))}
    assert own_rate(tried, SMALL, 1.0) == 1_000


@pytest.mark.parametrize(
    ("sustained", "high", "low"),
    [(12_000, 10_000, 1_000), (11_000, 9_900, 1_000), (1_000, 900, 100), (4, 4, 1)],
)
def test_the_rates_of_the_papers_are_taken_where_they_hold_and_else_it_is_said_why_not(
    sustained: int, high: int, low: int
) -> None:
    plan = plan_of()
    rates = {traffic: traffic_rate(plan, traffic, sustained) for traffic in plan.traffics}
    assert {traffic: rate.per_s for traffic, rate in rates.items()} == {
        "high": high, "constant_high": high, "low": low, "constant_low": low,
    }  # fmt: skip
    for traffic, rate in rates.items():
        is_published = rate.per_s == PUBLISHED[traffic]
        why_not = f"which the better baseline sustains: the {PUBLISHED[traffic]:,}/s of the papers"
        assert ("as in the papers" in rate.reason) == is_published
        assert (why_not in rate.reason) != is_published


def test_a_rate_that_is_given_is_that_of_high_traffic() -> None:
    plan = plan_of(rate=20_000)
    sustained = sustained_rate({}, plan)
    assert traffic_rate(plan, "high", sustained).per_s == 20_000
    assert traffic_rate(plan, "low", sustained).per_s == 2_222


def test_traffic_that_is_chosen_is_run_in_place_of_what_a_quick_run_has(tmp_path: Path) -> None:
    wanted = ("constant_low", "low")
    plan = plan_of(quick=True, modes=("sb-fair",), traffics=wanted, rate=9_000)
    asked: list[tuple[str, Together]] = []
    records = executed(msgspec.structs.replace(plan, shocks=()), tmp_path, faking(asked))
    assert {record.cell.traffic for record in records} == set(wanted)
    assert {(conditions.traffic, conditions.rate) for _, conditions in asked} == {
        ("constant", 1_000), ("normal", 1_000),
    }  # fmt: skip
    assert "traffic: high, constant_high" in plan.left_out
    assert plan_of(traffics=wanted).traffics == wanted


def test_modes_take_turns_in_processes_that_stay(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, search=None, rate=1_000)
    asked: list[tuple[str, Together]] = []
    records = executed(plan, tmp_path, faking(asked))
    compared = [record for record in records if record.kind == "compared"]
    first, second = (
        [(r.system, r.cell.deadline_s) for r in compared if r.repeat == n] for n in (0, 1)
    )
    assert sorted(first) == sorted(second)
    assert first != second, "who goes first changes"
    assert first.count(("asap", 5.0)) == 1
    assert ("asap", 1.0) not in first, "it knows of no deadline, so one run serves for all"
    warm_ups = [conditions.warm_up_s for process, conditions in asked if process == "edf"]
    assert warm_ups[0] == plan.first_warm_up_s
    assert set(warm_ups[1:]) == {plan.warm_up_s}


def test_a_process_that_does_not_start_fails_its_runs_and_no_others(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, search=None, rate=1_000)
    records = executed(plan, tmp_path, faking([], missing="rdas"))
    failed = {record.system for record in records if record.run.verdict.kind == "failed"}
    assert failed == {"db-rdas"}


def test_processor_time_is_divided_by_how_long_tasks_ran(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, search=None, rate=1_000, modes=("db-edf",))
    record = executed(plan, tmp_path, faking([]))[-1]
    query_run = record.queries[QUERIES[0]]
    # 3 s for three queries that ran alike: one second for the rows measured, one every 100 ms.
    rows = sum(span.rows for span in query_run.measured)
    assert query_run.cpu_us_per_row == pytest.approx(1e6 / rows)
    assert query_run.throughput == pytest.approx(1 / 0.06)


def test_a_compared_run_is_written_as_a_simulation_takes_it(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, search=None, rate=1_000, modes=("sb-fair", "db-edf"))
    records = executed(plan, tmp_path, faking([]))
    written = [for_file(record) for record in records]
    by_mode = {run["system"]: run["measured_run"] for run in written if run["kind"] == "compared"}
    ours, theirs = by_mode["db-edf"], by_mode["sb-fair"]
    assert (ours["cores"], ours["order"], theirs["order"]) == (2, "edf", "fair")
    assert [query["name"] for query in ours["queries"]] == list(QUERIES)
    assert {query["policy"] for query in ours["queries"]} == {"deadline"}
    assert theirs["queries"][0]["interval_ms"] in (1_000.0, 5_000.0)
    assert theirs["queries"][0]["deadline_ms"] is None
    first = ours["queries"][0]["batches"][0]
    assert first["visible_at_ms"] - first["cut_at_ms"] == 60.0
    assert (first["rows"], first["planning_ms"], first["core_ms"]) == (1, 5.0, 30.0)
    assert all(run["measured_run"] is None for run in written if run["kind"] == "spare")


def test_the_last_rows_come_while_more_are_on_their_way_and_those_do_not_count() -> None:
    conditions = plan_of(quick=True).conditions("db-edf", 5.0, "high", 1_000, 8.0)
    assert conditions.seconds == 8.0 + 15.0 + 5.0
    runs = query_runs(conditions, "db-edf", 0, noted(conditions, rising=False), (5.0,))
    latency = runs[QUERIES[0]].run.latency
    assert latency is not None
    # A row every 100 ms of the 15 s, the first of them due at their begin.
    assert latency.rows == 149
    assert len(runs[QUERIES[0]].measured) == 150


def test_batches_longer_than_the_edges_of_a_run_do_not_seem_to_rise() -> None:
    # Five batches of 5 s, each visible 2 s after its last row; measured from 8 s to 23 s.
    conditions = plan_of(quick=True).conditions("sb-fifo", 5.0, "high", 1_000, 8.0)
    steady = noted(conditions, rising=False)
    rows = [
        Sighting(
            (STARTED_MS + end * 1000 + 2_000) * 1000,
            (STARTED_MS + np.arange((end - 5) * 1000, end * 1000, 50)) * 1000,
        )
        for end in (5, 10, 15, 20, 25, 30)
    ]
    for part in steady.parts.values():
        part.rows = rows
    run = query_runs(conditions, "sb-fifo", 0, steady, (5.0,))[QUERIES[0]].run
    assert run.slope_ms_per_s == pytest.approx(0.0)


def test_only_cut_and_order_differ_between_the_modes() -> None:
    confs = {name: {**SYSTEMS[system].conf, **conf} for name, (system, conf) in PROCESSES.items()}
    compared = [confs[name] for name in ("fifo", "fair", "edf", "rdas")]
    keys = {key for conf in compared for key in conf}
    differing = {key for key in keys if len({conf.get(key) for conf in compared}) > 1}
    assert differing == {"spark.scheduler.mode", "spark.penstock.schedule"}
    static = MODES["sb-fair"].part("lr_join_30_1", 5.0)
    assert (static.every_s, static.options, static.pool) == (5.0, {}, "lr_join_30_1")
    ours = MODES["db-edf"].part("lr_join_30_1", 0.8)
    assert (ours.every_s, ours.pool) == (0.0, None)
    assert ours.options == {"deadline": "800ms", "policy": "deadline"}
    hurried = MODES["asap"].part("lr_join_30_1", 5.0)
    assert (hurried.every_s, hurried.options) == (0.0, {})
    alone = MODES["sb-edf"].part("lr_join_30_1", 5.0)
    assert alone.options == {"deadline": "5000ms", "policy": "fixed", "interval": "5000ms"}


def test_a_quick_run_fits_35_minutes_and_says_what_it_leaves_out() -> None:
    plan = plan_of(quick=True)
    assert plan.minutes < 35
    assert plan.repeats >= 3
    assert plan.deadlines_s == (1.0, 5.0)
    assert plan.left_out
    whole = plan_of()
    assert set(whole.modes) == set(MODES)
    assert whole.deadlines_s == (1.0, 5.0, 8.0, 10.0)
    assert set(whole.traffics) == {"high", "low", "constant_high", "constant_low"}


def test_a_burst_comes_once_and_is_ten_times_the_rate() -> None:
    plan = msgspec.structs.replace(plan_of(quick=True, modes=("db-edf",)), search=None, rate=1_000)
    asked: list[tuple[str, Together]] = []
    steps = deadlines.runs.runs(plan, Path("unused"), lambda _: None, faking(asked))
    step = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            step = steps.send(step.measure())
    conditions = next(each for _, each in asked if each.traffic == "burst")
    load = conditions.load({"reports": "reports"})
    by_second = [0] * int(conditions.seconds + 1)
    for piece in pieces(load):
        by_second[piece.due_us // 1_000_000] += piece.rows.num_rows
    calm, burst = load.rate, 10 * load.rate
    assert by_second.count(burst) == 5
    begin = int(conditions.burst_from_s)
    assert by_second[begin : begin + 5] == [burst] * 5
    assert set(by_second[:begin]) == {calm}


def test_a_backlog_is_the_events_before_the_live_ones_in_the_same_event_time() -> None:
    conditions = Together((), 1_000, 0.0, 1.0, traffic="constant", backlog_rows=20_000)
    conditions = msgspec.structs.replace(
        conditions, parts=(MODES["db-edf"].part("lr_speed_30_1", 5.0),)
    )
    streams = {"reports": "reports"}
    before, live = (
        [stamp for piece in pieces(load) for stamp in piece.rows["timestamp"].to_pylist()]
        for load in (conditions.backlog(streams), conditions.load(streams))
    )
    assert len(before) == 20_000
    # 250 events in a second of event time, at four times the clock's speed.
    assert before[-1] == 80
    assert live[0] == 81
    assert before == sorted(before)


def test_a_backlog_comes_in_commits_that_a_small_first_batch_can_be_made_of() -> None:
    conditions = Together((MODES["db-edf"].part("lr_speed_30_1", 5.0),), 1_000, 0.0, 1.0)
    for rows in (5_000, 200_000):
        conditions = msgspec.structs.replace(conditions, backlog_rows=rows)
        commits = [piece.rows.num_rows for piece in pieces(conditions.backlog({"reports": "r"}))]
        assert sum(commits) == rows
        assert max(commits) <= FIRST_ROWS / 2


@pytest.mark.parametrize(
    ("suite", "arguments", "words"),
    [
        ("deadlines", ["--mode", "edf"], "it has"),
        ("deadlines", ["--deadline", "0"], "above 0"),
        ("deadlines", ["--traffic", "steady"], "high, low, constant_high, constant_low"),
        ("bounded", ["--query", "q1"], "it has"),
    ],
)
def test_a_name_that_is_not_there_is_answered_with_those_that_are(
    suite: str, arguments: list[str], words: str
) -> None:
    outcome = CliRunner().invoke(bench, [suite, "--quick", *arguments])
    assert isinstance(outcome.exception, BadCall)
    assert words in outcome.exception.message
