"""A suite for real, at the smallest size, and what an interrupt leaves behind."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import psutil
from rich.console import Console

from penstock_lab.experiment.plan import plan_of
from penstock_lab.experiment.query_sets import QUERY_SETS
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run as run_suite
from penstock_lab.experiment.turns import Tell
from penstock_lab.measure.killed_driver import Answered, Size
from penstock_lab.measure.query_groups import Group
from penstock_lab.suites import answers, compared
from support.servers.processes import QUICK_START

SMALL = msgspec.structs.replace(
    plan_of(QUERY_SETS["nexmark"], quick=True, queries=("q18",), chosen=("penstock",), rate=500),
    repeats=1,
    warm_up_s=1.0,
    first_warm_up_s=2.0,
    measure_s=4.0,
    again_max=0,
)
START_TIMEOUT_S = 300.0
END_TIMEOUT_S = 300.0


def test_a_suite_measures_checks_and_writes_what_it_promises(tmp_path: Path) -> None:
    steps_told: list[str] = []
    said = io.StringIO()
    path = tmp_path / "result.json"
    outlet = Outlet(Console(file=said, width=160), path)
    is_right = run_suite(compared.SUITES["nexmark"], SMALL, tmp_path, steps_told.append, outlet)
    written = json.loads(path.read_text())
    assert list(written) == ["suite", "machine", "versions", "settings", "runs", "figures"]
    (run,) = written["runs"]
    assert is_right
    assert steps_told == ["q18 on penstock, 1 of 1"]
    assert run["verdict"]["kind"] in ("ok", "void: late generator"), run["verdict"]
    assert run["rows_checked"] > 0
    assert run["rows_different"] == 0
    assert run["results"] > 0
    # The sender ends with the measured stretch, which begins with the last batch of the warm-up.
    assert 500 * 4 * 46 // 50 <= run["sent"]["rows"] <= 500 * 6 * 46 // 50
    assert run["warm_up_s"] <= 3.0
    assert run["warm_up_batches"] >= 1
    assert 0 < run["latency"]["p50"] <= run["latency"]["p99"] <= run["latency"]["max"]
    assert run["phases"]["q18"]["batches"] > 2
    assert written["figures"]["headline.answers_wrong"] == 0
    if run["verdict"]["kind"] == "ok":
        assert written["figures"]["Q18.penstock.p50_ms"] == run["latency"]["p50"]
        assert written["figures"]["Q18.penstock.p99_ms"] == run["latency"]["p99"]
    else:
        assert written["figures"]["headline.runs_void"] == 1
        assert "Q18.penstock.p99_ms" not in written["figures"]
    assert "Q18" in said.getvalue()
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def test_a_planted_wrong_query_is_reported_and_the_right_one_beside_it_is_not(
    tmp_path: Path,
) -> None:
    def planted(group: Group, size: Size, folder: Path, tell: Tell) -> list[Answered]:
        """Spark is told to select other auctions than the oracle thinks."""
        asked = tuple(
            replace(query, parameters={"auctions": [1_007, 1_020]}) if query.name == "q2" else query
            for query in group.asked
        )
        small = Size(20, 1_000, QUICK_START)
        return answers.answered(replace(group, asked=asked), small, folder, tell)

    steps_told: list[str] = []
    said = io.StringIO()
    path = tmp_path / "answers.json"
    plan = answers.plan_of(queries=("q2", "q18"), quick=True, data=tmp_path)
    suite = replace(answers.SUITE, runs=partial(answers.runs, answer=planted))
    outlet = Outlet(Console(file=said, width=80), path)
    is_right = run_suite(suite, plan, tmp_path, steps_told.append, outlet)
    written = json.loads(path.read_text())
    figures = written["figures"]
    assert not is_right
    assert figures["headline.answers_wrong"] == 1
    assert figures["headline.queries_failed"] == 0
    assert figures["Q2.different"] > 0
    assert figures["Q18.different"] == 0
    assert figures["Q18.rows"] > 0
    assert all(run["instance"] == 2 and run["batches"] >= 20 for run in written["runs"])
    assert "wrong: Q2" in said.getvalue()
    assert len(steps_told) == 2 * 20
    assert [file.name for file in tmp_path.iterdir()] == ["answers.json"]


def test_an_interrupt_leaves_no_process_behind_and_still_writes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    command = [sys.executable, "-m", "penstock", "bench", "nexmark", "--quick"]
    command += ["--query", "q1", "--json", str(path), "--dir", str(tmp_path)]
    bench = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started = _wait_for_spark(bench)
    bench.send_signal(signal.SIGINT)
    _, complaint = bench.communicate(timeout=END_TIMEOUT_S)
    assert bench.returncode == 130, complaint
    _, alive = psutil.wait_procs(started, timeout=60)
    assert [child.cmdline() for child in alive] == []
    assert json.loads(path.read_text())["suite"] == "nexmark"
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


def _wait_for_spark(bench: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Every process below, once there is a JVM among them."""
    until = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < until:
        below: list[psutil.Process] = psutil.Process(bench.pid).children(recursive=True)
        if any("java" in process.name() for process in below):
            return below
        time.sleep(0.1)
    bench.kill()
    raise AssertionError("no JVM was started")
