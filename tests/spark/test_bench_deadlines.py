"""The deadlines suite in short, on Spark: queries at once and their shocks, the answers checked."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.checks import ComparedRows, with_oracle
from penstock_lab.experiment.joint_rig import JointRig
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.experiment.together import BACKLOG_TICK_MS
from penstock_lab.queries import Query
from penstock_lab.suites import deadlines
from penstock_lab.suites.deadlines import seats, shocks
from penstock_lab.suites.deadlines.cells import ALL, BESIDE, Cell, Plan
from penstock_lab.suites.deadlines.modes import PROCESSES
from penstock_lab.suites.deadlines.plans import plan_of
from penstock_lab.suites.deadlines.record import Record

WRONG = "lr_speed_30_1"
FIRST = "db-edf"
ADMITTED = (FIRST, "auto", "zstream")
"""Modes whose batches a policy cuts, all in one process."""
SMALL = msgspec.structs.replace(
    plan_of(quick=True, modes=ADMITTED, deadlines_s=(2.0,), rate=200, seconds=4.0),
    repeats=1,
    spare_repeats=0,
    warm_up_s=2.0,
    first_warm_up_s=8.0,
    shocks=("burst", "backlog", "beside"),
    backlog_rows=5_000,
    burst_after_s=2.0,
    again_max=0,
)

SHORTEST = msgspec.structs.replace(
    plan_of(quick=True, modes=("sb-fair", "asap", "db-rdas"), deadlines_s=(1.0,), rate=200),
    measure_s=1.0,
    measure_deadlines=0,
    warm_up_s=1.0,
    first_warm_up_s=2.0,
    burst_after_s=1.0,
    queries=("lr_speed_30_1",),
)


def checked(client: object, query: Query, *rest: object) -> ComparedRows:
    """The oracle's answer, and two rows more that differ where a wrong one is planted."""
    outcome = with_oracle(client, query, *rest)  # type: ignore[arg-type]
    assert outcome.rows_checked
    assert outcome.rows_different == 0, outcome.first
    planted = 2 if query.name == WRONG else 0
    return msgspec.structs.replace(outcome, rows_different=planted)


def opened(plan: Plan, process: str, folder: Path) -> JointRig:
    system, conf = PROCESSES[process]
    return JointRig(system, folder, cores=plan.cores, check=checked, conf=conf, tells_commits=True)


@pytest.fixture
def short_shocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (seats, shocks):
        monkeypatch.setattr(module, "BESIDE_S", (0.5, 1.0))
    monkeypatch.setattr(shocks, "BURST_S", 1.0)


@pytest.mark.usefixtures("short_shocks")
def test_queries_with_deadlines_run_at_once_and_a_planted_wrong_answer_is_named(
    tmp_path: Path,
) -> None:
    shown = io.StringIO()
    file, picture = tmp_path / "deadlines.json", tmp_path / "deadlines.png"
    runs = partial(deadlines.runs.runs, opening=opened)
    suite = dataclasses.replace(deadlines.SUITE, runs=runs)
    outlet = Outlet(Console(file=shown, width=160), file, picture)
    assert not run(suite, SMALL, tmp_path, lambda _: None, outlet), shown.getvalue()
    written = msgspec.json.decode(file.read_bytes())
    compared = [each for each in written["runs"] if each["kind"] == "compared"]
    assert [each["system"] for each in compared] == [*ADMITTED]
    shocked = {each["kind"]: each for each in written["runs"] if each["kind"] != "compared"}
    assert {kind: each["system"] for kind, each in shocked.items()} == dict.fromkeys(
        SMALL.shocks, FIRST
    )
    assert f"{WRONG}: 2 of" in shown.getvalue()
    assert written["figures"]["headline.answers_wrong"] == len(written["runs"])
    for each in compared:
        assert each["verdict"]["kind"] == "wrong", each["verdict"]
        assert set(each["queries"]) == set(SMALL.queries)
        for name in ("lr_join_30_1", "lr_count_30_1"):
            query_run = each["queries"][name]
            # A sender that was late on a busy machine is a verdict too.
            if query_run["run"]["verdict"]["kind"] == "ok":
                assert_query_is_measured(written["figures"], name, each["system"], query_run)
    assert f"{WRONG}.2s.high.db-edf.p95_ms" not in written["figures"]
    assert "backlog.db-edf.back_s" not in written["figures"], "its answer was wrong"
    assert set(shocked["burst"]["recoveries"]) == set(SMALL.queries)
    assert set(shocked["beside"]["queries"]) == set(BESIDE)
    assert_batches_double(shocked["backlog"]["queries"][WRONG]["spans"]["rows"])
    profiled = {(times["mode"], times["query"]) for times in written["profile"]["batches"]}
    assert profiled >= counted_in(compared)
    assert "where batch time goes" in shown.getvalue()
    assert picture.stat().st_size > 1_000


def assert_batches_double(rows: list[int]) -> None:
    """A query that meets a backlog begins with a small batch, and the next has twice as much."""
    first, second, *others = (count for count in rows if count)
    # As many are sent in a second, in commits that are never divided.
    commit_rows = SMALL.backlog_rows * BACKLOG_TICK_MS // 1_000
    assert first <= 1_000
    assert second <= 2 * first + commit_rows
    assert first + second + sum(others) > SMALL.backlog_rows
    assert others


def counted_in(compared: list[dict[str, Any]]) -> set[tuple[str, str]]:
    """Mode and query of the runs that count and had rows in their measured seconds."""
    return {
        (each["system"], name)
        for each in compared
        for name, query_run in each["queries"].items()
        if query_run["run"]["verdict"]["kind"] == "ok" and query_run["throughput"] is not None
    }


def assert_query_is_measured(
    figures: dict[str, float], name: str, mode: str, query_run: dict[str, Any]
) -> None:
    """Latency is that of its input rows; batches carry rows, tasks and the longest latency, and the
    server accounts for the cuts."""
    inner, columns = query_run["run"], query_run["spans"]
    rows, sent_s = sum(columns["rows"]), 14.0 if mode == FIRST else 8.0
    assert rows == pytest.approx(200 * sent_s, rel=0.2), "each input row is in one batch"
    assert query_run["admission"]["batches"] > 0
    key = f"{name}.2s.high.{mode}"
    assert figures[f"{key}.p95_ms"] == inner["latency"]["p95"]
    assert 0 < figures[f"{key}.mean_ms"] <= figures[f"{key}.p99_ms"]
    assert 0 <= figures[f"{key}.miss_ratio"] <= 1
    # On a busy machine no batch may have been cut in the measured seconds.
    if f"{key}.throughput" in figures:
        assert figures[f"{key}.throughput"] > 0
        assert figures[f"{key}.cpu_us_per_row"] > 0
    with_rows = [n for n, count in enumerate(columns["rows"]) if count]
    assert all(columns["visible_ms"][n] >= columns["cut_ms"][n] for n in with_rows)
    assert any(columns["tasks_ms"][n] > 0 for n in with_rows)


@pytest.mark.usefixtures("short_shocks")
def test_modes_that_share_the_cores_run_beside_each_other_and_through_a_burst(
    tmp_path: Path,
) -> None:
    with contextlib.ExitStack() as closing:
        taken = seats.Seats(SHORTEST, tmp_path, seats.rig, closing)
        beside = shocks.beside(SHORTEST, taken, "sb-fair", 200).measure()
        burst = shocks.burst(SHORTEST, taken, "asap", 200).measure()
        cell = Cell(ALL, 1.0, "high")
        shared = seats.measured(SHORTEST, taken, cell, "db-rdas", 0, 200, "compared")
        assert {path.name for path in tmp_path.iterdir()} == {"fair", "rdas"}
    assert set(beside.queries) == set(BESIDE)
    assert rows_read(beside) == {name: rows_sent(200, 5.0) for name in BESIDE}
    # A second of ten times the rate among three others.
    assert rows_read(burst) == {"lr_speed_30_1": rows_sent(200, 13.0)}
    assert set(burst.recoveries) == set(burst.queries)
    assert rows_read(shared) == {"lr_speed_30_1": rows_sent(200, 4.0)}
    by_mode = {record.system: record.queries["lr_speed_30_1"] for record in (beside, burst, shared)}
    assert {name for name, query_run in by_mode.items() if query_run.admission} == {"db-rdas"}


def rows_read(record: Record) -> dict[str, int]:
    """The rows that the batches of each query took, in a run with right answers."""
    verdict = record.run.verdict
    # A sender that was late on a busy machine is a verdict too.
    assert verdict.kind in ("ok", "void: late generator"), verdict
    return {name: sum(s.rows for s in each.spans) for name, each in record.queries.items()}


def rows_sent(rate: int, seconds: float) -> object:
    return pytest.approx(rate * seconds, rel=0.3)
