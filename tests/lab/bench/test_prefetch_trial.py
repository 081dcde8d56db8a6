"""The prefetch suite around benches that are made up: rates, turns, who falls behind, answers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from rich.console import Console

from penstock.errors import TryAgain
from penstock_lab.experiment.filled import (
    FilledConditions,
    FilledNoted,
    FilledState,
    filled_run,
)
from penstock_lab.experiment.filled_rig import FilledBench
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import Trial, run
from penstock_lab.experiment.state_reads import CacheReads, StateReads
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites.prefetch import SUITE
from penstock_lab.suites.prefetch import runs as prefetch_runs
from penstock_lab.suites.prefetch.cells import Group, Plan, Workload
from penstock_lab.suites.prefetch.modes import OURS, PREFETCH, ROCKSDB
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.records import Record
from penstock_lab.suites.prefetch.rooms import Open
from penstock_lab.suites.prefetch.tables import asyncio_cache
from penstock_lab.workloads.send import SenderReport
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
BATCH_MS, ROWS = 100, 50
MIB = 2**20
CAPACITY = {"lru": 1_000, "asyncio-lru": 2_000, OURS: 4_000}
"""Rows per second that each mode can take."""
SMALL = msgspec.structs.replace(
    plan_of(quick=True, queries=("q18",)),
    repeats=2,
    overhead_turns=3,
    parts=("rates", "overhead"),
)


class Fake:
    """A Spark process that takes so many rows per second, and answers as it is told to."""

    def __init__(self, mode: str, asked: list[tuple[str, FilledConditions]], different: int = 0):
        self.mode, self.asked, self.different = mode, asked, different

    def run_filled(self, filled: FilledState, conditions: FilledConditions) -> FilledNoted:
        self.asked.append((self.mode, conditions))
        return noted(conditions, CAPACITY[self.mode], self.different)


def noted(conditions: FilledConditions, capacity: int, different: int = 0) -> FilledNoted:
    """A batch of 50 rows every 100 ms, seen 100 ms after it is sent, or ever later if overrun."""
    is_behind = conditions.rate > capacity
    count = conditions.warm_batches + conditions.batches
    sent_ms = [STARTED_MS + BATCH_MS * n for n in range(count)]
    rows = [
        Sighting((at + 100 + (at - STARTED_MS) * is_behind) * 1000, np.full(ROWS, at * 1000))
        for at in sent_ms
    ]
    took_ms = ROWS / capacity * 1000
    batches = [Span(n, at + 40.0, at + 40.0 + took_ms, ROWS) for n, at in enumerate(sent_ms)]
    sent = Sent(count * ROWS, count, count / 10, 0, 1.0, 1.0, 1.0, 1.0, 1.0, True)
    from_ms = STARTED_MS + BATCH_MS * conditions.warm_batches
    prefetch = conditions.conf.get("spark.penstock.prefetch", "off")
    return FilledNoted(
        rows,
        SenderReport(sent, STARTED_MS, [1.0] * 10),
        from_ms,
        from_ms + BATCH_MS * conditions.batches,
        cpu_s=1.02 if prefetch == "auto" else 1.0,
        is_drained=not is_behind,
        batches=batches,
        reads=[StateReads(n, 50 * n, 10 * n, 25 * n, 80 * MIB) for n in range(count)],
        cache=[CacheReads(hits=90, misses=10, used=40, unused=1, hint_bytes=2, shuffle_bytes=100)],
        rows_checked=5,
        rows_different=different,
    )


def faking(
    asked: list[tuple[str, FilledConditions]], *, missing: str = "", wrong: str = ""
) -> Open:
    @contextlib.contextmanager
    def open_(
        plan: Plan, group: Group, mode: str, room: FilledRoom, folder: Path
    ) -> Iterator[FilledBench]:
        if mode == missing:
            raise TryAgain(f"{mode} does not start", code="worker_failed")
        yield Fake(mode, asked, 2 if mode == wrong else 0)

    return open_


def filled(plan: Plan, workload: Workload, room: FilledRoom, folder: Path) -> FilledState:
    return FilledState(workload.query, str(folder), {}, sst_bytes=80 * MIB)


def suite_with(opening: Open) -> Suite[Plan, Record]:
    def entering(folder: Path) -> contextlib.AbstractContextManager[FilledRoom]:
        return contextlib.nullcontext(FilledRoom(folder))

    runs = partial(prefetch_runs.runs, opening=opening, filling=filled, entering=entering)
    return dataclasses.replace(SUITE, runs=runs, require=lambda plan: None)


def executed(plan: Plan, folder: Path, opening: Open) -> list[Record]:
    trial = Trial(suite_with(opening), plan, folder, lambda _: None)
    trial.execute()
    return trial.records


def test_the_rate_is_a_share_of_what_the_best_other_works_off(tmp_path: Path) -> None:
    records = executed(SMALL, tmp_path, faking([]))
    backlogs = [(r.repeat, r.system) for r in records if r.kind == "backlog"]
    assert backlogs[:3] == [(0, "lru"), (0, "asyncio-lru"), (0, OURS)]
    in_turns = [OURS, "asyncio-lru", "asyncio-lru", OURS]
    assert [system for _, system in backlogs[3:]] == in_turns, "lru is not rated"
    assert {record.run.rate for record in records if record.kind == "compared"} == {1_400}


def test_modes_take_turns_in_who_goes_first(tmp_path: Path) -> None:
    asked: list[tuple[str, FilledConditions]] = []
    records = executed(SMALL, tmp_path, faking(asked))
    compared = [(r.repeat, r.system) for r in records if r.kind == "compared"]
    assert compared == [(0, "asyncio"), (0, OURS), (1, OURS), (1, "asyncio")]
    live = [conditions for _, conditions in asked if conditions.rate]
    assert {conditions.batches for conditions in live} == {SMALL.batches}


def test_the_table_says_which_cache_asyncio_has(tmp_path: Path) -> None:
    records = executed(SMALL, tmp_path, faking([]))
    backlogs = [record for record in records if record.kind == "backlog"]
    said = "Q18.read1ms: asyncio is asyncio-lru"
    alone = asyncio_cache(backlogs, backlogs[0].cell.workload)
    assert alone == f"{said}, the only one of its two caches that was run"
    by_clock = msgspec.structs.replace(backlogs[0].run, system="asyncio-clock")
    other = msgspec.structs.replace(backlogs[0], run=by_clock)
    assert asyncio_cache([*backlogs, other], other.cell.workload) == said


def test_lru_works_off_its_backlog_in_the_process_that_has_its_cache(tmp_path: Path) -> None:
    asked: list[tuple[str, FilledConditions]] = []
    records = executed(SMALL, tmp_path, faking(asked))
    (of_lru,) = [record for record in records if record.system == "lru"]
    assert of_lru.kind == "backlog"
    assert of_lru.filled_run.throughput == CAPACITY["asyncio-lru"], "it is that process"
    guest = [(seat, c.conf) for seat, c in asked if c.conf.get("spark.penstock.prefetch") == "off"]
    conf = {"spark.penstock.prefetch": "off", "spark.penstock.prefetch.cache": "lru"}
    assert guest[0] == ("asyncio-lru", conf)
    assert "lru" not in {seat for seat, _ in asked}


def test_overhead_is_measured_in_turns_in_one_process(tmp_path: Path) -> None:
    asked: list[tuple[str, FilledConditions]] = []
    records = executed(SMALL, tmp_path, faking(asked))
    in_turns = [(s, c) for s, c in asked if c.backlog_events == SMALL.overhead_events]
    turns = [(seat, c.conf[PREFETCH]) for seat, c in in_turns]
    assert {seat for seat, _ in turns} == {OURS}
    assert [mode for _, mode in turns] == ["off", "auto", "auto", "off"] * 2
    block_cache = f"{ROCKSDB}.blockCacheSizeMB"
    blocks_mb = {(c.conf[PREFETCH], c.conf[block_cache]) for _, c in in_turns}
    # Of each of two stores: all of the budget, or a megabyte behind a cache of values.
    assert blocks_mb == {("off", "4"), ("auto", "1")}
    by_name = {figure.name: figure for figure in SUITE.figures(SMALL, records)}
    assert by_name["headline.overhead_in_memory"].value == 1.02 - 1
    assert len(by_name["headline.overhead_in_memory"].repeats) == SMALL.overhead_turns


def test_a_mode_that_falls_behind_is_named_and_stays_as_a_lower_bound(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, rate=3_000, parts=("rates",))
    shown = io.StringIO()
    outlet = Outlet(Console(file=shown, width=160), tmp_path / "prefetch.json")
    assert run(suite_with(faking([])), plan, tmp_path, lambda _: None, outlet)
    assert "falls behind: Q18.read1ms.high at 3,000/s: asyncio" in shown.getvalue()
    written = msgspec.json.decode((tmp_path / "prefetch.json").read_bytes())
    figures = written["figures"]
    assert figures["Q18.read1ms.high.asyncio.behind"] == 2
    theirs, ours = (figures[f"Q18.read1ms.high.{name}.p999_ms"] for name in ("asyncio", OURS))
    assert theirs > 2 * ours
    assert figures["headline.p999_ratio_min"] == round(theirs / ours, 3)
    assert figures["headline.runs_stalled"] == 0, "it is a result, not a fault"
    behind = [each["system"] for each in written["runs"] if each["falls_behind"]]
    assert behind == ["asyncio", "asyncio"]
    assert written["runs"][0]["rocksdb"]["block_misses"] == 25 * SMALL.batches


def test_a_backlog_counts_however_late_it_was_sent() -> None:
    backlog = FilledConditions("q18", backlog_events=500, rows_max=50, stall_s=60.0)
    live = FilledConditions("q18", rate=500)
    verdicts = []
    for conditions in (backlog, live):
        late = noted(conditions, 1_000)
        assert late.report is not None
        sent = msgspec.structs.replace(late.report.sent, lag_ms_p99=900.0)
        late.report = msgspec.structs.replace(late.report, sent=sent)
        verdicts.append(filled_run(conditions, "lru", 0, late).run.verdict.kind)
    assert verdicts == ["ok", "void: late generator"]


def test_a_planted_wrong_answer_is_named(tmp_path: Path) -> None:
    shown = io.StringIO()
    outlet = Outlet(Console(file=shown, width=160), tmp_path / "prefetch.json")
    plan = msgspec.structs.replace(SMALL, rate=1_000, parts=("rates",))
    opening = faking([], wrong="asyncio-lru")
    assert not run(suite_with(opening), plan, tmp_path, lambda _: None, outlet)
    assert "does not count: Q18.read1ms.high at 1,000/s: asyncio" in shown.getvalue()
    figures = msgspec.json.decode((tmp_path / "prefetch.json").read_bytes())["figures"]
    assert figures["headline.answers_wrong"] == 2
    assert "headline.p999_ratio_min" not in figures


def test_a_process_that_does_not_start_fails_its_runs_and_no_others(tmp_path: Path) -> None:
    plan = msgspec.structs.replace(SMALL, rate=1_000, parts=("rates",))
    records = executed(plan, tmp_path, faking([], missing="asyncio-lru"))
    failed = {record.system for record in records if record.run.verdict.kind == "failed"}
    assert failed == {"asyncio"}
