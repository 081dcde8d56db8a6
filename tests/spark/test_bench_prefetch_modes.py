"""Modes, overhead, look-ups and adaptation of the prefetch suite in short, in one Spark process."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.checks import with_oracle
from penstock_lab.experiment.filled import FilledConditions, FilledNoted, FilledState
from penstock_lab.experiment.filled_rig import FilledBench, FilledRig, unfilled
from penstock_lab.experiment.filled_room import FilledRoom
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.queries import named
from penstock_lab.suites.prefetch import SUITE, adaptation, rooms
from penstock_lab.suites.prefetch import runs as prefetch_runs
from penstock_lab.suites.prefetch.cells import ADS, SYSTEM, Group, Plan, Workload
from penstock_lab.suites.prefetch.modes import MODES, OURS, PREFETCH, ROCKSDB
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.rooms import PROGRESS, filled_state
from support.servers.redis_server import RedisServer

SMALL = msgspec.structs.replace(
    plan_of(quick=True, queries=("q18", "ysb"), modes=("asyncio-lru", OURS), rate=300),
    repeats=1,
    batches=4,
    warm_batches=2,
    seconds_max=30.0,
    # Half of them fill the state of the adaptation.
    fill_events=12_000,
    auctions=3_000,
    backlog_rows_max=250,
    overhead_turns=1,
    overhead_events=3_000,
    again_max=0,
)
CHANGE_LOG = f"{ROCKSDB}.changelogCheckpointing.enabled"
NEVER_IN_TIME = {f"{PREFETCH}.margin": "3600000"}
"""No slack covers it, so of the candidates left the earliest hints, on every machine."""


class OfMode:
    """A process that all modes share: a query has the settings of its mode for itself."""

    def __init__(self, rig: FilledRig, mode: str) -> None:
        self.rig, self.mode = rig, mode

    def run_filled(self, filled: FilledState, conditions: FilledConditions) -> FilledNoted:
        further = NEVER_IN_TIME if filled.query == adaptation.QUERY else {}
        conf = {**MODES[self.mode].of_query, **conditions.conf, **further}
        return self.rig.run_filled(filled, msgspec.structs.replace(conditions, conf=conf))


class OneProcess:
    """Opens the rig of the first mode, and gives it to the others too."""

    def __init__(self) -> None:
        self.rig: FilledRig | None = None

    @contextlib.contextmanager
    def open(
        self, plan: Plan, group: Group, mode: str, room: FilledRoom, folder: Path
    ) -> Iterator[FilledBench]:
        with contextlib.ExitStack() as closing:
            if self.rig is None:
                conf = {**MODES[mode].conf(group.budget_mb, group.reads), **PROGRESS}
                check = partial(with_oracle, generator=ADS)
                rig = FilledRig(SYSTEM, folder, room, cores=plan.cores, conf=conf, check=check)
                self.rig = closing.enter_context(rig)
            yield OfMode(self.rig, mode)


def filled(plan: Plan, workload: Workload, room: FilledRoom, folder: Path) -> FilledState:
    """A filled state for the adaptation alone: another test has runs over one."""
    if workload.query == "q18":
        return unfilled(room, folder, named(workload.query), plan.cores)
    return filled_state(plan, workload, room, folder)


@pytest.fixture
def short_adaptation(monkeypatch: pytest.MonkeyPatch) -> None:
    # A state so small would be a change log, and read from memory.
    monkeypatch.setattr(rooms, "PROGRESS", {**PROGRESS, CHANGE_LOG: "false"})
    for name, number in {
        "READ_MS": 2,
        "DROPPED_AFTER": 10,
        "FASTER_AFTER": 16,
        "BATCHES": 20,
        "BATCH_ROWS": 46,
    }.items():
        monkeypatch.setattr(adaptation, name, number)


@pytest.mark.usefixtures("short_adaptation")
def test_every_part_runs_with_right_answers_and_the_controller_leaves_a_place_that_lost_accuracy(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    shown, file = io.StringIO(), tmp_path / "prefetch.json"
    runs_here = partial(prefetch_runs.runs, opening=OneProcess().open, filling=filled)
    suite = dataclasses.replace(SUITE, runs=runs_here)
    outlet = Outlet(Console(file=shown, width=200), file, tmp_path / "prefetch.png")
    plan = msgspec.structs.replace(SMALL, redis=redis_server.url)
    is_right = run(suite, plan, tmp_path, lambda _: None, outlet)
    written = msgspec.json.decode(file.read_bytes())
    runs, figures = written["runs"], written["figures"]
    assert is_right, [each["verdict"] for each in runs]
    assert figures["headline.runs_failed"] == 0, [each["verdict"] for each in runs]
    by_mode = {(each["cell"], each["system"]): each for each in runs}
    # Runs may be void here, if the sender was late; they were measured all the same.
    for mode in ("asyncio", OURS):
        stateful = by_mode["Q18.read1ms.high", mode]
        assert stateful["cache"]["hits"] + stateful["cache"]["misses"] > 0
        assert stateful["cpu_us_per_row"] > 0
        assert by_mode["ysb.high", mode]["cache"]["lookup_batches"] > 0
    turns = [each for each in runs if each["kind"] == "overhead" and each["repeat"]]
    assert {each["system"] for each in turns} == {"off", OURS}
    # A turn that is void, or too short for a tick of processor time, has no part in the figure.
    if all(each["verdict"]["kind"] == "ok" and each["cpu_us_per_row"] for each in turns):
        assert "headline.overhead_in_memory" in figures
    assert figures["adaptation.accuracy_batches"] <= 5
    adapted = by_mode["kept_bids.read1ms.hot0.adaptation.high", OURS]
    dropped_from = adapted["shifts"]["accuracy"]
    sampled = [each for each in adapted["stretches"] if each["batch"] >= 0]
    before = {each["active"] for each in sampled if each["batch"] < dropped_from - 1}
    assert "AD" in before, shown.getvalue()
    assert sampled[-1]["active"] == "BD", "right below the partial aggregate, above the join"
    assert "A and all before it are discarded" in shown.getvalue()
