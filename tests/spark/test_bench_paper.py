"""The paper suite in short: its two queries on Spark, a graph with a filled state, warm tasks."""

from __future__ import annotations

import contextlib
import dataclasses
import io
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.plan import WarmUp
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.rig import Rig
from penstock_lab.experiment.run import run
from penstock_lab.experiment.suite import Suite
from penstock_lab.measure.task_graph_runs import Fill
from penstock_lab.suites import paper
from penstock_lab.suites.paper.batch_runs import Open, rig
from penstock_lab.suites.paper.cells import CM1, LR2, Batches, Graphs, Plan, Recovery, Search
from penstock_lab.suites.paper.runs import Record
from penstock_lab.suites.paper.store import Calibration
from penstock_lab.suites.protocols.cells import plan_of as protocols_plan

GRAPHS = Graphs(
    msgspec.structs.replace(
        protocols_plan(
            quick=True,
            queries=("q4",),
            chosen=("marker", "aligned"),
            intervals_ms=(20,),
            rate=500,
            log="embedded",
        ),
        repeats=1,
        measure_s=1.0,
        warm_up_s=0.3,
        quiet_s=0.3,
        again_max=0,
        fill=Fill(10.0, 20.0),
    ),
    {"q4": (500,)},
    rule_s=1.0,
    recovery=Recovery(20, 500, recoveries=1),
)
"""Ten seconds of events in the state, then one second that is measured."""
BATCHES = Batches(
    (CM1, LR2),
    (300,),
    ("full",),
    repeats=1,
    batches=3,
    warm_up=1,
    process_warm_up=WarmUp(20.0, 2),
    calibration=3,
    search=Search(300, 300, 1, 2),
    partitions=2,
    trigger_s=1.0,
    again_max=0,
)


STORE = Calibration(100.0, 1_000.0, 2.0)
"""A store that is known before anything is measured, so that a process serves both queries."""


def shared(folder: Path, closing: contextlib.ExitStack) -> Open:
    """Opens a process for each system once, whatever its settings were to be."""
    rigs: dict[str, Rig] = {}

    @contextlib.contextmanager
    def opening(plan: Batches, system: str, _: Path, conf: Mapping[str, str]) -> Iterator[Rig]:
        if system not in rigs:
            made = rig(plan, system, folder / system, STORE.conf)
            rigs[system] = closing.enter_context(made)
        yield rigs[system]

    return opening


def written(
    plan: Plan, folder: Path, suite: Suite[Plan, Record] = paper.SUITE
) -> dict[str, object]:
    file, out = folder / "paper.json", io.StringIO()
    outlet = Outlet(Console(file=out, width=120), file, folder / "paper.png")
    assert run(suite, plan, folder, lambda _: None, outlet), out.getvalue()
    assert (folder / "paper.png").stat().st_size > 1_000
    assert sorted(path.name for path in folder.iterdir()) == ["paper.json", "paper.png"]
    whole: dict[str, object] = msgspec.json.decode(file.read_bytes())
    return whole


def test_a_graph_runs_on_a_state_that_was_filled_before(tmp_path: Path) -> None:
    whole = written(Plan(None, GRAPHS), tmp_path)
    runs, figures = whole["runs"], whole["figures"]
    assert isinstance(runs, list)
    assert isinstance(figures, dict)
    assert [record.get("kind") for record in runs] == [*["sustain"] * 2, *["compared"] * 2, None]
    assert figures["headline.answers_wrong"] == figures["headline.runs_failed"] == 0
    # Only the rate that is there can be chosen, and only what was sent by it is measured.
    assert figures["log.Q4.rate_per_s"] == 500
    for record in runs[2:4]:
        assert record["rows_checked"] > 0
        assert record["latency"] is None or record["latency"]["max"] < 5_000
    for start in ("cold", "warm"):
        assert figures[f"recovery.{start}_with_ms"] > 0
    assert figures["recovery.warm_with_ms"] < figures["recovery.cold_with_ms"]


def test_both_queries_run_on_a_store_as_slow_as_their_checkpoints_ask(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with contextlib.ExitStack() as closing:
        opening = shared(tmp_path_factory.mktemp("rigs"), closing)
        suite = dataclasses.replace(paper.SUITE, runs=partial(paper.runs.runs, opening=opening))
        whole = written(Plan(BATCHES, None), tmp_path, suite)
    runs, figures = whole["runs"], whole["figures"]
    assert isinstance(runs, list)
    assert isinstance(figures, dict)
    assert [(record["cell"], record["kind"]) for record in runs] == [
        ("CM1@300", "calibration"),
        ("CM1@300", "compared"),
        ("LR2", "calibration"),
        ("LR2", "compared"),
    ]
    assert figures["headline.answers_wrong"] == figures["headline.runs_failed"] == 0
    for record in runs:
        assert record["rows_checked"] > 0
        assert record["measured_batches"] > 0
        assert record["cpu_s"] > 0
    for cell in ("CM1@300", "LR2"):
        assert figures[f"{cell}.store.checkpoint_kb"] > 0
        slowdown = figures[f"{cell}.store.ms_per_mb"] / 10
        lasts_ms = figures[f"{cell}.store.checkpoint_ms"] * slowdown
        assert slowdown == 1 or abs(lasts_ms - 2_500) < 50
