"""Records of made-up runs of every suite, and the names of the figures they give."""

from __future__ import annotations

from typing import Any

from penstock_lab.experiment.figures import figures as compared_figures
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Run
from penstock_lab.experiment.verdicts import Verdict
from penstock_lab.suites import floor, sustain
from penstock_lab.suites.answers.report import figures as answers_figures
from penstock_lab.suites.answers.trial import Answered
from penstock_lab.suites.commit import cells as commit_cells
from penstock_lab.suites.commit.batches import Timed
from penstock_lab.suites.commit.figures import figures as commit_figures
from penstock_lab.suites.commit.plan import plan_of as commit_plan
from penstock_lab.suites.commit.record import Measured
from penstock_lab.suites.commit.trial import Searched
from penstock_lab.suites.log.figures import figures as log_figures
from penstock_lab.suites.log.plan import QUICK, SIZES, WRITERS
from penstock_lab.suites.protocols import plan as protocols_plan
from penstock_lab.suites.protocols.figures import figures as protocols_figures
from penstock_lab.suites.protocols.record import Measured as OfProtocol
from penstock_lab.suites.sustain import Tried

STEPS = {name: {"count": 2.0, "total_ms": 30.0, "max_ms": 20.0} for name in ("marker", "copy")}


def run_of(query: str, system: str, repeat: int, p99: float, kind: str = "ok") -> Run:
    latency = Latencies(100, p99 / 2, p99 * 0.9, p99, p99, p99)
    verdict = Verdict(kind, ("why not",) * (kind != "ok"))  # type: ignore[arg-type]
    return Run(
        query, system, repeat, verdict, 2_000, 100, latency, past_window=latency, lag_ms=[1.0, 2.0]
    )


def floor_runs(spark: list[float], ours: list[float]) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    for repeat, (their, our) in enumerate(zip(spark, ours, strict=True)):
        phases = {"walCommit": 40.0}
        runs += [
            {"system": "penstock", "repeat": repeat, "trigger_ms_p50": our, "phases_ms": phases},
            {"system": "spark", "repeat": repeat, "trigger_ms_p50": their, "phases_ms": phases},
            {"system": "append", "repeat": repeat, "append_ms_p50": 2.0 + repeat},
            {"system": "fetch", "repeat": repeat, "fetch_mb_per_s": 300.0 + repeat},
        ]
    return runs


def floor_names() -> set[str]:
    return {figure.name for figure in floor.figures(floor_runs([100.0], [130.0]))}


def compared_names() -> set[str]:
    runs = [
        run_of(query, system, 0, 100)
        for query in ("q1", "lr_join_30_5")
        for system in ("default", "tuned", "penstock")
    ]
    return {figure.name for figure in compared_figures(runs)}


def sustain_names() -> set[str]:
    (plan,) = sustain.search_of(("q18",), ("tuned",), quick=True).plans
    return {sustain.figure(plan, [Tried(5_000, True), Tried(10_000, False)]).name}


def commit_names() -> set[str]:
    cells = [
        *(commit_cells.Cell("lr_join_30_1", at, 0.0, True) for at in ("local", "remote20")),
        commit_cells.Cell("lr_join_30_1", "remote80", 0.0, True),
        commit_cells.Cell("cm_category_60_10", "remote20", 3.0, False, 1_500),
    ]
    batches = [Timed(number, number * 1_000, 10, 100.0, 1.0) for number in range(4)]
    runs = [
        Measured(cell, run_of(cell.query, name, 0, 100), batches, [100.0] * 4, STEPS, 500.0)
        for cell in cells
        for name in ("default", "tuned", "asyncckpt", "full")
    ]
    runs += [
        Measured(cells[0], run_of("lr_join_30_1", name, 0, 9), [], [9.0] * 200, {}, None, "growth")
        for name in ("full", "default")
    ]
    searched = [
        Searched(cells[0], name, (Tried(10_000, True, "held"), Tried(20_000, False, "rises")))
        for name in ("tuned", "full")
    ]
    return {figure.name for figure in commit_figures(commit_plan(quick=True), runs, searched)}


def log_runs() -> list[dict[str, Any]]:
    cells = [f"{size}.w{writers}" for size in SIZES for writers in WRITERS]
    per = {"append_per_s": 100.0, "append_ms_p50": 1.0, "append_ms_p99": 3.0}
    runs: list[dict[str, Any]] = []
    for repeat in range(3):
        for backend in QUICK.backends:
            about = {"backend": backend, "repeat": repeat}
            runs.append({"measured": "appends", **about, **dict.fromkeys(cells, per)})
            delivered = {"deliver_ms_p50": 2.0 + repeat, "deliver_ms_p99": 9}
            runs.append({"measured": "deliver", **about, **delivered})
    start = {
        f"{size}_{state}_ms": values
        for state in ("cold", "warm", "cold_open", "warm_open")
        for size, values in (("small", [100.0, 200.0]), ("large", [150.0, 240.0]))
    }
    for number, backend in enumerate(QUICK.backends):
        few, many = [100, 110, 50], [95, 100 + number, 50]
        of = {"backend": backend}
        runs.append({"measured": "tags", **of, "few_mb_per_s": few, "many_mb_per_s": many})
        runs.append({"measured": "starts", **of, **start})
        recovery = {"without_ms": [1000.0 + 200 * number], "with_ms": [200.0]}
        log = {"without_log_ms": [800.0], "with_log_ms": [40.0]}
        runs.append({"measured": "recovery", **of, **recovery, **log})
    return runs


def log_names() -> set[str]:
    return {figure.name for figure in log_figures(QUICK, log_runs())}


def protocols_names() -> set[str]:
    runs = [
        OfProtocol(cell, name, run_of(cell.query, name, 0, 20), 90.0)
        for cell in (protocols_plan.Cell("q4", 10), protocols_plan.Cell("q8", 100))
        for name in ("marker", "transaction", "aligned", "unsafe")
    ]
    return {figure.name for figure in protocols_figures(protocols_plan.plan_of(quick=True), runs)}


def answers_names() -> set[str]:
    answered = [
        Answered("q4", 130_000, 4, 27, 900, 0, 2),
        Answered("replay.cm_job_60_5", 130_000, 4, 27, 900, 12, 2),
        Answered("q6", 130_000, error="q6 has ended; Spark said: no more memory"),
    ]
    return {figure.name for figure in answers_figures(answered)}
