"""The prefetch suite in short, on Spark: a state filled once and put back, its answer checked."""

from __future__ import annotations

import dataclasses
import io
from functools import partial
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.checks import ComparedRows, with_oracle
from penstock_lab.experiment.filled_rig import FilledRig
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.queries import Query
from penstock_lab.suites.prefetch import SUITE
from penstock_lab.suites.prefetch import runs as prefetch_runs
from penstock_lab.suites.prefetch.cells import SYSTEM, Group, Plan
from penstock_lab.suites.prefetch.modes import LRU, MODES
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.rooms import PROGRESS

MODE = "asyncio-lru"
SMALL = msgspec.structs.replace(
    plan_of(quick=True, queries=("q18",), modes=(LRU, MODE), parts=("rates",)),
    repeats=1,
    backlog_repeats=1,
    batches=5,
    warm_batches=2,
    seconds_max=30.0,
    fill_events=6_000,
    auctions=1_500,
    backlog_events=2_000,
    backlog_rows_max=250,
    again_max=0,
)


BACKLOG_BIDS = 46 * SMALL.backlog_events // 50
"""Of fifty events, 46 are bids."""


class Checker:
    """The oracle, and two rows more that differ in the last run, where a wrong one is planted."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, client: object, query: Query, *rest: object) -> ComparedRows:
        outcome = with_oracle(client, query, *rest)  # type: ignore[arg-type]
        assert outcome.rows_different == 0, outcome.first
        self.calls += 1
        if self.calls == 1:
            assert outcome.rows_checked > BACKLOG_BIDS, "those of the fill are checked too"
        return msgspec.structs.replace(outcome, rows_different=0 if self.calls < 3 else 2)


def test_runs_begin_with_the_filled_state_and_a_planted_wrong_answer_is_named(
    tmp_path: Path,
) -> None:
    checker = Checker()

    def opened(plan: Plan, group: Group, mode: str, room: FilledRoom, folder: Path) -> FilledRig:
        conf = {**MODES[mode].conf(group.budget_mb, group.reads), **PROGRESS}
        return FilledRig(SYSTEM, folder, room, cores=plan.cores, conf=conf, check=checker)

    shown, file = io.StringIO(), tmp_path / "prefetch.json"
    runs = partial(prefetch_runs.runs, opening=opened)
    suite = dataclasses.replace(SUITE, runs=runs)
    outlet = Outlet(Console(file=shown, width=160), file, tmp_path / "prefetch.png")
    assert not run(suite, SMALL, tmp_path, lambda _: None, outlet)
    written = msgspec.json.decode(file.read_bytes())
    backlog, fetching, live = written["runs"]
    # The first has no process of its own.
    assert [each["system"] for each in (backlog, fetching, live)] == [LRU, MODE, "asyncio"]
    for each in (backlog, fetching):
        assert each["verdict"]["kind"] == "ok", each["verdict"]
    assert backlog["cache"]["hint_bytes"] == 0 < fetching["cache"]["hint_bytes"]
    assert backlog["cache"]["hits"] > 0, "its values are cached all the same"
    spans, measured = backlog["spans"], backlog["measured"]
    looked_up = backlog["cache"]["hits"] + backlog["cache"]["misses"]
    for count in (looked_up, backlog["rocksdb"]["gets"]):
        assert len(spans["rows"]) < count <= BACKLOG_BIDS, "many in a batch, one for a row at most"
    rows = sum(spans["rows"][-measured:])
    took_ms = sum(spans["visible_ms"][-measured:]) - sum(spans["cut_ms"][-measured:])
    assert backlog["throughput"] == pytest.approx(rows / took_ms * 1000)
    assert backlog["cpu_us_per_row"] > 0
    assert sum(backlog["spans"]["rows"]) == BACKLOG_BIDS, "and none of the fill"
    assert live["verdict"]["kind"] == "wrong", live["verdict"]
    best = max(each["throughput"] for each in (backlog, fetching))
    assert live["rate"] == round(0.7 * best)
    assert "does not count: Q18.read1ms.high" in shown.getvalue()
    assert written["figures"]["headline.answers_wrong"] == 1
    assert f"Q18.read1ms.{MODE}.throughput" in written["figures"]
