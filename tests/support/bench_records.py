"""Records of made-up runs of every suite, and the names of the figures they give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Kind, Measured, Run
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.together import QueryRun
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.experiment.visible_rows import Recovery, Span
from penstock_lab.measure.killed_driver import Answered
from penstock_lab.measure.log_sizes import CLIENTS, EMBEDDED, GATEWAY_SIZES, SIZES, WRITERS
from penstock_lab.suites import (
    answers,
    bounded,
    commit,
    compared,
    deadlines,
    floor,
    log,
    protocols,
    sustain,
)
from penstock_lab.suites.bounded.cells import Cell as BoundedCell
from penstock_lab.suites.bounded.cells import plan_of as bounded_plan
from penstock_lab.suites.bounded.runs import Record as BoundedRecord
from penstock_lab.suites.columnar import SUITE as COLUMNAR
from penstock_lab.suites.columnar.cells import PATHS as COLUMNAR_PATHS
from penstock_lab.suites.columnar.cells import QUICK as COLUMNAR_QUICK
from penstock_lab.suites.columnar.cells import Plan as ColumnarPlan
from penstock_lab.suites.commit.cells import Cell as CommitCell
from penstock_lab.suites.commit.plans import plan_of as commit_plan
from penstock_lab.suites.commit.runs import Record as CommitRecord
from penstock_lab.suites.deadlines.cells import BESIDE, BESIDE_S
from penstock_lab.suites.deadlines.cells import Cell as DeadlineCell
from penstock_lab.suites.deadlines.plans import plan_of as deadlines_plan
from penstock_lab.suites.deadlines.record import Record as DeadlineRecord
from penstock_lab.suites.floor import cells as floor_cells
from penstock_lab.suites.log.cells import QUICK

P = TypeVar("P")
R = TypeVar("R")
STEPS = {name: {"count": 2.0, "total_ms": 30.0, "max_ms": 20.0} for name in ("marker", "copy")}


def names_of(suite: Suite[P, R], plan: P, records: Sequence[R]) -> set[str]:
    """The names of a suite's figures, each of which there is once."""
    names = [figure.name for figure in suite.figures(plan, records)]
    assert len(names) == len(set(names))
    return set(names)


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
            {
                "system": "penstock",
                "repeat": repeat,
                "trigger_ms_p50": our,
                "phases_ms": phases,
                "explained": 0.95,
                "requests": 9,
                "visible_ms_p50": 12.0,
                "wall_ms": {"planning": 15.0, "build job": 10.0},
                "task_ms": {"read": 9.0},
                "counters": {"requests": 9.0},
            },
            {"system": "spark", "repeat": repeat, "trigger_ms_p50": their, "phases_ms": phases},
            {"system": "spark+switches", "repeat": repeat, "trigger_ms_p50": their - 5},
            {
                "system": "evict",
                "repeat": repeat,
                "evict_spark_ms_p50": 600.0,
                "evict_ours_ms_p50": 120.0,
            },
            {"system": "append", "repeat": repeat, "append_ms_p50": 2.0 + repeat},
            {"system": "fetch", "repeat": repeat, "fetch_mb_per_s": 300.0 + repeat},
        ]
    return runs


def floor_names() -> set[str]:
    return names_of(floor.SUITE, floor_cells.QUICK, floor_runs([100.0], [130.0]))


def ablated_run(query: str, repeat: int, whole_ms: float, **other_ms: float) -> dict[str, Any]:
    """Runs of a query in one process: with every mechanism, and with each that is named changed."""
    return {
        "system": "turns",
        "query": query,
        "repeat": repeat,
        "variants": {
            name: {
                "trigger_ms_p50": ms,
                "explained": 0.93,
                "wall_ms": {"planning": ms / 10},
                "task_ms": {"read": 9.0},
                "counters": {"requests": 4.0},
            }
            for name, ms in {"penstock": whole_ms, **other_ms}.items()
        },
    }


def ablated_names(
    queries: tuple[str, ...], without: tuple[str, ...], with_also: tuple[str, ...]
) -> set[str]:
    plan = floor_cells.plan_of(quick=True, queries=queries, without=without, with_also=with_also)
    other_ms = dict.fromkeys((*without, *with_also), 120.0)
    return names_of(
        floor.SUITE, plan, [ablated_run(query, 0, 100.0, **other_ms) for query in queries]
    )


def columnar_runs(
    plan: ColumnarPlan, spark: list[float], panes: list[float], auto: list[float]
) -> list[dict[str, Any]]:
    """Runs in which every case took as long as every other; workers as long as panes."""
    filled: dict[str, Any] = {"system": "fill", "repeat": 0, "rows": 1_000}
    repeats = [
        {
            path: {"ms_p50": ms, "stage_ms_p50": ms / 2, "rows": 3, "notes": []}
            for path, ms in zip(COLUMNAR_PATHS, times, strict=True)
        }
        for times in zip(spark, panes, panes, auto, strict=True)
    ]
    parts = dict.fromkeys(("boot", "init", "code", "rest", "total", "task"), 2.0)
    trip = {f"{part}_ms": ms for part, ms in parts.items()}
    return [filled] + [
        {
            "system": "paths",
            "repeat": number,
            "cases": {case.name: paths for case in plan.cases},
            "round_trip": trip,
        }
        for number, paths in enumerate(repeats)
    ]


def columnar_names() -> set[str]:
    records = columnar_runs(COLUMNAR_QUICK, [300.0], [100.0], [101.0])
    return names_of(COLUMNAR, COLUMNAR_QUICK, records)


def compared_names() -> set[str]:
    suite = compared.SUITES["nexmark"]
    records = [
        Measured(compared.Cell(query), run_of(query, system, 0, 100))
        for query in ("q1", "lr_join_30_5")
        for system in ("default", "tuned", "penstock")
    ]
    return names_of(suite, suite.plan_of(quick=True), records)


def at_rate(run: Run, rate: int, slope: float) -> Run:
    return msgspec.structs.replace(run, rate=rate, slope_ms_per_s=slope)


def sustain_names() -> set[str]:
    search = sustain.search_of(queries=("q18",), chosen=("tuned", "penstock"), quick=True)
    run = run_of("q18", "tuned", 0, 100)
    # The search of penstock was cut short: it might hold more, and has no figure.
    cut = run_of("q18", "penstock", 0, 100)
    tried = [at_rate(run, 10_000, 0.0), at_rate(run, 11_000, 99.0), at_rate(cut, 10_000, 0.0)]
    records = [Measured(compared.Cell("q18"), each, "sustain") for each in tried]
    return names_of(sustain.SUITE, search, records)


def commit_names() -> set[str]:
    cells = [
        *(CommitCell("lr_join_30_1", at, 0.0, True) for at in ("local", "remote20", "remote80")),
        CommitCell("cm_category_60_10", "remote20", 3.0, False, 1_500),
    ]
    batches = [Timed(number, number * 1_000, 10, 100.0, 1.0) for number in range(4)]

    def record(cell: CommitCell, system: str, took: int, kind: Kind = "compared") -> CommitRecord:
        run = at_rate(run_of(cell.query, system, 0, 100), cell.rate, 99.0 * (cell.rate > 10_000))
        return CommitRecord(cell, run, kind, batches, [100.0] * took, STEPS, 500.0)

    cells.append(CommitCell("lr_join_30_1", "local", 0.0, False))
    names = (
        *("default", "zstream", "tuned", "tuned+files", "asyncckpt", "full", "full-replicated"),
        *("tuned-files", "plug-in-sync", "plug-in"),
    )
    records = [record(cell, name, 4) for cell in cells for name in names]
    records += [record(cells[0], name, 200, "growth") for name in ("full", "default")]
    records += [
        record(msgspec.structs.replace(cells[0], rate=rate), name, 4, "sustain")
        for name in ("tuned", "full")
        for rate in (10_000, 11_000)
    ]
    search = commit_plan(quick=False).sustain
    assert search is not None, "a full run looks for rates"
    here = msgspec.structs.replace(search, cells=(cells[0],))
    plan = msgspec.structs.replace(commit_plan(quick=True), sustain=here)
    return names_of(commit.SUITE, plan, records)


def query_run(run: Run, deadlines_s: Sequence[float] = ()) -> QueryRun:
    """A query's run with every number that a suite may ask for."""
    spans = [Span(number, number * 1_000.0, number * 1_000.0 + 400.0, 50) for number in range(4)]
    return QueryRun(
        run,
        80.0,
        {f"{bound:g}": 0.02 for bound in deadlines_s},
        run.latency,
        run.latency,
        90.0,
        120.0,
        15.0,
        {"ours": 0.1, "zstream": 0.3, "lmstream": 0.2},
        {"moment_late_ms_p95": 4.0, "decision_share": 0.002, "batches": 8, "moments_unasked": 2},
        spans,
        spans,
    )


def deadlines_records() -> list[DeadlineRecord]:
    """One run of each kind and mode of a quick plan."""
    plan = deadlines_plan(quick=True)
    bounds = (*plan.deadlines_s, *BESIDE_S)

    def record(
        mode: str, deadline_s: float, traffic: str, kind: Kind, queries: Sequence[str], rate: int
    ) -> DeadlineRecord:
        run = at_rate(run_of("all", mode, 0, 100), rate, 99.0 * (rate > 2_000))
        each = {name: query_run(run_of(name, mode, 0, 100), bounds) for name in queries}
        back = dict.fromkeys(queries, Recovery(5_000.0, 3.0, True, 9_000.0))
        return DeadlineRecord(DeadlineCell("all", deadline_s, traffic), run, kind, each, back)

    every = plan.queries
    records = [
        record(mode, bound, "high", "sustain", every, rate)
        for mode, bound in plan.searched
        for rate in (2_000, 2_200)
    ]
    records += [
        record(m, bound, "high", "compared", every, 1_800) for m, bound in plan.compared_runs
    ]
    records += [record("db-edf", bound, "high", "spare", every, 1_400) for bound in (1.0, 5.0)]
    shocks: dict[str, tuple[Kind, float, Sequence[str]]] = {
        "burst": ("burst", plan.longest_s, every),
        "backlog": ("backlog", plan.longest_s, every[1:2]),
        "beside": ("beside", 1.0, BESIDE),
    }
    for shock, mode in plan.shock_runs:
        kind, bound, queries = shocks[shock]
        records.append(record(mode, bound, shock, kind, queries, 600))
    return records


def deadlines_names() -> set[str]:
    return names_of(deadlines.SUITE, deadlines_plan(quick=True), deadlines_records())


def bounded_records() -> list[BoundedRecord]:
    """One run of each kind of a quick plan; static fails at 16,000 events a second."""

    def record(query: str, system: str, kind: Kind, rate: int, slope: float) -> BoundedRecord:
        run = at_rate(run_of(query, system, 0, 100), rate, slope)
        cell = BoundedCell(query, rate)
        return BoundedRecord(cell, run, kind, query_run=query_run(run))

    records = [
        record(query, system, "compared", 1_000, 0.0)
        for query, policy in (("lr_join_30_5", "slide"), ("lr_join_30_tumbling", "running-mean"))
        for system in ("static", policy)
    ]
    records.append(record("lr_join_30_5", "static", "sustain", 8_000, 0.0))
    records.append(record("lr_join_30_5", "static", "sustain", 16_000, 99.0))
    records.append(record("lr_join_30_5", "slide", "past limit", 16_000, 1.0))
    return records


def bounded_names() -> set[str]:
    return names_of(bounded.SUITE, bounded_plan(quick=True), bounded_records())


def log_runs() -> list[dict[str, Any]]:
    cells = [f"{size}.w{writers}" for size in SIZES for writers in WRITERS]
    over_http = [f"{size}.w{clients}" for size in GATEWAY_SIZES for clients in CLIENTS]
    per = {"append_per_s": 100.0, "append_ms_p50": 1.0, "append_ms_p99": 3.0}
    runs: list[dict[str, Any]] = []
    for repeat in range(3):
        for backend in QUICK.backends:
            about = {"backend": backend, "repeat": repeat}
            runs.append({"measured": "appends", **about, **dict.fromkeys(cells, per)})
            if backend == EMBEDDED:
                runs.append({"measured": "gateway", **about, **dict.fromkeys(over_http, per)})
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
        if backend == EMBEDDED:
            runs.append({"measured": "crowd", **of, "crowd_ms_p99": 20.0})
        runs.append({"measured": "tags", **of, "few_mb_per_s": few, "many_mb_per_s": many})
        runs.append({"measured": "starts", **of, **start})
        recovery = {"without_ms": [1000.0 + 200 * number], "with_ms": [200.0]}
        log = {"without_log_ms": [800.0], "with_log_ms": [40.0]}
        runs.append({"measured": "recovery", **of, **recovery, **log})
    return runs


def log_names() -> set[str]:
    return names_of(log.SUITE, QUICK, log_runs())


def protocols_names() -> set[str]:
    records = [
        protocols.runs.Record(cell, run_of(cell.query, name, 0, 20), commits_per_s=90.0)
        for cell in (protocols.cells.Cell("q4", 10), protocols.cells.Cell("q8", 100))
        for name in ("marker", "transaction", "aligned", "unsafe")
    ]
    return names_of(protocols.SUITE, protocols.cells.plan_of(quick=True), records)


def answers_names() -> set[str]:
    records = [
        Answered("q4", 130_000, 4, 27, 900, 0, 2),
        Answered("replay.cm_job_60_5", 130_000, 4, 27, 900, 12, 2),
        Answered("q6", 130_000, error="q6 has ended; Spark said: no more memory"),
    ]
    plan = answers.plan_of(quick=True, queries=("q4",), data=Path("nowhere"))
    return names_of(answers.SUITE, plan, records)
