"""The order of the paper suite's runs on systems made up for the test, and its plans."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest

from penstock.errors import BadCall
from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.plan import Conditions, WarmUp
from penstock_lab.experiment.record import Noted
from penstock_lab.experiment.rig import Bench
from penstock_lab.suites.paper import batch_runs
from penstock_lab.suites.paper.batch_figures import uncalibrated_queries
from penstock_lab.suites.paper.batch_runs import Record
from penstock_lab.suites.paper.cells import CM1, LR2, Batches, Search
from penstock_lab.suites.paper.plans import plan_of
from penstock_lab.workloads.send import SenderReport
from penstock_lab.workloads.sending import Sent

STARTED_MS = 1_000_000
PLAN = Batches(
    (CM1, LR2),
    (2_500,),
    ("default", "zstream", "full"),
    repeats=2,
    batches=4,
    warm_up=1,
    process_warm_up=WarmUp(60.0, 5),
    calibration=3,
    search=Search(1_000, 64_000, 4, 4),
    lr2_systems=("default", "full"),
    again_max=0,
)
HOLDS = {"default": 2_000, "full": 10_000}


class Fake:
    """A system that notes what it is asked to run and holds its rate up to a limit."""

    def __init__(self, name: str, asked: list[tuple[str, Conditions]]) -> None:
        self.name, self.asked = name, asked
        self.is_drained = True
        self.snapshot_bytes = [80_000] * 6

    def run(self, conditions: Conditions) -> Noted:
        self.asked.append((self.name, conditions))
        is_late = conditions.rate > HOLDS[self.name]
        seconds = range(1, int(conditions.seconds) + 1)
        sightings = [
            Sighting(
                (STARTED_MS + second * 1000 * (2 if is_late else 1)) * 1000,
                np.array([(STARTED_MS + second * 1000 - 500) * 1000]),
            )
            for second in seconds
        ]
        sent = Sent(10, 10, conditions.seconds, 0, 1.0, 1.0, 1.0, 1.0, 1.0, True)
        batches = [Timed(n, STARTED_MS + 3_000 * n, 100, 900.0, 800.0) for n in range(6)]
        return Noted(
            *(sightings, SenderReport(sent, STARTED_MS, [1.0])),
            is_drained=self.is_drained,
            batches=batches,
            rows_checked=1,
            snapshot_bytes=self.snapshot_bytes,
            warm_up_batches=4 if conditions.warm_up_batches else None,
        )


def executed(
    plan: Batches, fakes: Mapping[str, Fake]
) -> tuple[list[Record], list[tuple[str, dict[str, str]]]]:
    """All steps, and with which settings each process was started."""
    opened: list[tuple[str, dict[str, str]]] = []

    @contextlib.contextmanager
    def opening(
        plan: Batches, system: str, folder: Path, conf: Mapping[str, str]
    ) -> Iterator[Bench]:
        opened.append((system, dict(conf)))
        yield fakes[system]

    records: list[Record] = []
    steps = batch_runs.runs(plan, Path("nowhere"), partial(opening))
    step = next(steps, None)
    while step is not None:
        records.append(step.measure())
        try:
            step = steps.send(records[-1])
        except StopIteration:
            break
    return records, opened


def fakes_of(*names: str) -> tuple[dict[str, Fake], list[tuple[str, Conditions]]]:
    asked: list[tuple[str, Conditions]] = []
    return {name: Fake(name, asked) for name in names}, asked


def test_a_store_is_calibrated_before_the_processes_that_use_it_start() -> None:
    fakes, asked = fakes_of("default", "full")
    records, opened = executed(msgspec.structs.replace(PLAN, queries=(CM1,)), fakes)
    assert [name for name, _ in opened] == ["default", "default", "full"]
    # A checkpoint took 100 ms at 20 ms per operation: all delays are 25 times as long.
    store = {**opened[1][1]}
    assert opened[0][1] == {}
    assert store == opened[2][1]
    assert store["spark.hadoop.fs.paper.ms.per.operation"] == "500"
    assert store["spark.hadoop.fs.paper.ms.per.mb"] == "250.0"
    assert [record.kind for record in records] == ["calibration", *["compared"] * 6]
    stores = [conditions.store for _, conditions in asked if conditions.every_s]
    assert stores == ["remote20", *["paper"] * 4]


def test_a_process_is_warmed_back_to_back_before_it_is_measured() -> None:
    fakes, asked = fakes_of("default", "full")
    records, _ = executed(msgspec.structs.replace(PLAN, queries=(CM1,), repeats=1), fakes)
    warming = [(name, c.warm_up_batches) for name, c in asked if not c.every_s and not c.options]
    assert warming == [("default", 5), ("default", 5), ("full", 5)]
    measured = [conditions for _, conditions in asked if conditions.every_s or conditions.options]
    assert {conditions.traffic for conditions in measured} == {"normal"}
    assert {conditions.event_speed for conditions in measured} == {1.0}
    counted = [(r.system, r.run.warm_up_batches, r.run.is_warm_up_short) for r in records]
    assert counted == [
        ("default", 4, True),
        ("default", 4, True),
        ("zstream", None, False),
        ("full", 4, True),
    ]


def test_systems_take_turns_and_zstream_runs_in_the_process_of_default() -> None:
    fakes, _ = fakes_of("default", "full")
    records, _ = executed(msgspec.structs.replace(PLAN, queries=(CM1,)), fakes)
    compared = [record.system for record in records if record.kind == "compared"]
    assert compared == ["default", "zstream", "full", "zstream", "full", "default"]
    assert all(len(record.measured) == 4 for record in records if record.kind == "compared")


def test_the_rate_of_the_join_is_found_before_it_is_compared() -> None:
    fakes, _ = fakes_of("default", "full")
    records, _ = executed(msgspec.structs.replace(PLAN, queries=(LR2,)), fakes)
    tries = [(r.system, r.run.rate) for r in records if r.kind == "sustain"]
    # `default` holds 2,000; `full` must hold half as much again, and is asked for no more.
    assert tries == [
        *(("default", rate) for rate in (1_000, 2_000, 4_000, 3_000)),
        ("full", 3_000),
    ]
    compared = [record for record in records if record.kind == "compared"]
    assert {(record.cell.name, record.cell.rate) for record in compared} == {("LR2", 2_400)}
    assert {record.system for record in compared} == {"default", "full"}


def test_a_run_that_was_not_worked_off_keeps_its_batches() -> None:
    fakes, _ = fakes_of("default", "full")
    fakes["default"].is_drained = False
    plan = msgspec.structs.replace(PLAN, queries=(CM1,), repeats=1, systems=("default", "full"))
    records, _ = executed(plan, fakes)
    compared = {record.system: record for record in records if record.kind == "compared"}
    assert compared["default"].is_bound
    assert not compared["full"].is_bound
    assert compared["default"].took_ms == [900.0] * 4


def test_a_quick_run_has_the_conditions_of_the_papers_and_is_short() -> None:
    plan = plan_of(quick=True)
    assert plan.minutes <= 23
    assert plan.batches is not None
    assert plan.graphs is not None
    assert (plan.batches.partitions, plan.batches.trigger_s, plan.batches.batches) == (8, 3.0, 30)
    assert plan.batches.rates == (2_500,)
    assert plan.graphs.protocols.fill.seconds == 120
    assert "asyncckpt" in " ".join(plan.left_out)
    full = plan_of()
    assert full.batches is not None
    assert full.graphs is not None
    assert (full.batches.batches, full.batches.rates) == (100, (2_500, 1_500))
    assert full.graphs.protocols.measure_s == 180
    assert full.left_out == ()
    assert full.steps > plan.steps > 0


def test_a_store_that_no_run_told_leaves_a_query_where_it_was_measured() -> None:
    fakes, asked = fakes_of("default", "full")
    fakes["default"].snapshot_bytes = []
    records, opened = executed(msgspec.structs.replace(PLAN, queries=(CM1,), repeats=1), fakes)
    assert {tuple(conf) for _, conf in opened} == {()}
    assert {conditions.store for _, conditions in asked if conditions.every_s} == {"remote20"}
    calibrations = [record for record in records if record.kind == "calibration"]
    assert uncalibrated_queries(PLAN, calibrations) == (CM1,)


def test_task_graphs_are_measured_for_the_seconds_that_are_asked_for() -> None:
    usual, longer = plan_of(quick=True), plan_of(quick=True, seconds=180.0)
    assert usual.graphs is not None
    assert longer.graphs is not None
    assert usual.graphs.protocols.measure_s == 12
    assert longer.graphs.protocols.measure_s == 180
    assert longer.graphs.protocols.intervals_ms == (10,)
    runs = longer.graphs.protocols.steps
    assert longer.minutes - usual.minutes == pytest.approx(runs * (180 - 12) / 60)
    assert "here 12 s" in " ".join(usual.left_out)
    assert "of 180 s" not in " ".join(longer.left_out)
    full = plan_of(seconds=60.0).graphs
    assert full is not None
    assert full.protocols.measure_s == 60


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"papers_asked": ("zstream",)}, "no paper zstream; it has misa, impeller"),
        ({"queries": ("q4",)}, "no query q4; it has cm1, lr2"),
        ({"chosen": ("tuned",)}, "no system tuned; it has default, zstream"),
    ],
)
def test_an_unknown_name_is_refused_with_those_there_are(
    given: dict[str, object], message: str
) -> None:
    with pytest.raises(BadCall, match=message):
        plan_of(quick=True, **given)  # type: ignore[arg-type]
