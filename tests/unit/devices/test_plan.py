"""Plans of single batches: which path, which devices, what is forced and what is refused."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.costs import inflection_bytes
from penstock.devices.explain import pipeline_inflection
from penstock.devices.plan import (
    UNMEASURED_FACTOR,
    Planning,
    cheapest_way,
    forced_plan,
    our_plan,
    pipeline_problem,
    policy_plan,
)
from penstock.devices.policies.ours import split_time
from penstock.devices.stage_time import StageSize, stage_size
from penstock.fit.line import Line
from penstock.model.device_plans import (
    BatchPlan,
    DeviceChoice,
    OperationKind,
    OperationReport,
    PathName,
    PipelineBody,
    PlanPolicy,
    PlanReport,
)
from support.device_worlds import (
    CPU_MACHINE,
    GPU_MACHINE,
    TrueMachine,
    batch_of,
    costs_of,
    pipeline_of,
    true_lines,
)

CHEAP_WORKER = {"worker": Line(0.1, 1e-9)}
KB, MB = 1_000, 1_000_000


def ours(pipeline: PipelineBody, *sizes: int, **lines: Line) -> BatchPlan:
    """The plan of a batch by the costs that we ship, but for some."""
    known = {**DEFAULT_LINES, **{name.replace("_at_", "@"): line for name, line in lines.items()}}
    planning = Planning.of(pipeline, batch_of(1, *sizes), costs_of(pipeline, known))
    return our_plan(planning, planning.ways(), None)


def devices_of(plan: BatchPlan) -> list[str]:
    return [operation.device for operation in plan.operations]


def test_a_small_batch_goes_through_spark_and_a_large_one_to_a_worker() -> None:
    pipeline = pipeline_of("project", "aggregate", machines=(CPU_MACHINE,), windows=12)
    small, large = ours(pipeline, 20 * KB), ours(pipeline, *[20 * MB] * 4)
    assert small.path in ("spark", "panes")
    assert large.path == "columnar"
    assert devices_of(large) == ["cpu", "cpu"]
    assert large.reason.startswith("cheapest: cpu ")
    assert "panes" in large.reason
    assert {operation.reason for operation in large.operations} == {"no machine has a GPU"}


def test_windows_make_spark_dearer_and_panes_not() -> None:
    few, many = (
        ours(pipeline_of("aggregate", paths=("spark", "panes"), windows=windows), 3 * MB)
        for windows in (1, 30)
    )
    assert (few.path, many.path) == ("spark", "panes")


def test_operations_move_to_the_gpu_one_by_one_as_batches_grow() -> None:
    pipeline = pipeline_of("filter", "sort", "aggregate", paths=("columnar",))
    splits = [tuple(devices_of(ours(pipeline, size))) for size in (KB, 400 * KB, 10 * MB)]
    assert splits[0] == ("cpu", "cpu", "cpu")
    assert splits[1][1] == "gpu"
    assert splits[1] != splits[2]
    assert splits[2] == ("gpu", "gpu", "gpu")


def test_expected_times_are_sums_over_tasks_and_parts() -> None:
    pipeline = pipeline_of("filter", paths=("columnar",), machines=(CPU_MACHINE,))
    plan = ours(pipeline, MB, MB, worker=Line(10.0, 1e-6), filter_at_cpu=Line(1.0, 2e-6))
    assert plan.operations[0].expected_ms == pytest.approx(2 * 1.0 + 2 * 2.0)
    assert plan.expected_ms == pytest.approx(6.0 + 2 * 10.0 + 2 * 1.0)


def test_the_time_of_a_stage_is_that_of_its_largest_task_or_of_all_over_the_cores() -> None:
    line = Line(1.0, 1e-6)
    skewed = StageSize(tasks=4, bytes=7 * MB, largest_bytes=6 * MB, cores=4)
    assert skewed.time(line).wall == pytest.approx(7.0)
    many = StageSize(tasks=16, bytes=16 * MB, largest_bytes=MB, cores=4)
    assert many.time(line).wall == pytest.approx(8.0)
    assert many.time(line).summed == pytest.approx(32.0)


SORT_LINES = {
    "sort@cpu": Line(4.0, 0.0),
    "sort@gpu": Line(0.5, 0.0),
    "to_gpu": Line(0.25, 0.0),
    "to_cpu": Line(0.25, 0.0),
    "worker": Line(1.0, 0.0),
}
"""A sort of any size: 4 ms on the CPU, 1 ms on the GPU with the way there and back."""


def bounded(workers: int, tasks: int, **more: object) -> Planning:
    """A batch on four cores, of whose tasks so many at a time may have the GPU."""
    pipeline = pipeline_of("sort", paths=("columnar",), gpu_workers=workers, **more)
    return Planning.of(pipeline, batch_of(1, *[MB] * tasks), costs_of(pipeline, SORT_LINES))


def test_tasks_beyond_the_bound_on_workers_are_reckoned_on_the_cpu() -> None:
    """Execution refuses them as busy, and does not have them wait."""
    for workers, wall_ms, summed_ms in ((1, 4.0, 13.0), (2, 4.0, 10.0), (4, 1.0, 4.0)):
        time = split_time(bounded(workers, 4).table, ["gpu"])
        assert (time.wall, time.summed) == pytest.approx((wall_ms, summed_ms), rel=1e-3)
    plan = policy_plan(bounded(1, 4, policy="all-gpu"), 150 * KB)
    assert plan.operations[0].expected_ms == pytest.approx(0.5 + 3 * 4.0, rel=1e-3)
    assert plan.expected_ms == pytest.approx(4 * 1.0 + 13.0, rel=1e-3)
    assert plan.reason.endswith("; 1 of 4 tasks at a time may have a GPU (gpuWorkers is 1)")


def test_of_many_tasks_the_faster_device_takes_more() -> None:
    """A core that is free takes the next one: here the GPU does one while three cores do three
    quarters of one."""
    time = split_time(bounded(1, 16).table, ["gpu"])
    assert time.wall == pytest.approx(16 / (1 + 3 / 4), rel=1e-3)
    assert time.summed == pytest.approx(4 * time.wall, rel=1e-3)
    assert split_time(bounded(1, 16).table, ["cpu"]).wall == pytest.approx(16.0, rel=1e-3)


@pytest.mark.parametrize(
    ("workers", "tasks", "device"),
    [(1, 1, "gpu"), (1, 4, "cpu"), (3, 4, "cpu"), (4, 4, "gpu"), (1, 16, "gpu")],
)
def test_a_stage_that_ends_with_tasks_on_the_cpu_is_not_planned_for_the_gpu(
    workers: int, tasks: int, device: str
) -> None:
    planning = bounded(workers, tasks)
    plan = our_plan(planning, planning.ways(), None)
    assert devices_of(plan) == [device]
    is_bounded = workers < min(tasks, 4)
    assert plan.reason.endswith(f"may have a GPU (gpuWorkers is {workers})") == is_bounded


def test_a_gpu_that_is_insisted_on_is_for_all_tasks() -> None:
    """One that cannot have it fails, so that none is reckoned on the CPU."""
    plan = forced_plan(bounded(1, 4, devices="gpu"))
    assert plan.operations[0].expected_ms == pytest.approx(4 * 0.5, rel=1e-3)


def test_a_task_larger_than_the_memory_of_a_gpu_is_reckoned_in_parts() -> None:
    machine = pipeline_of("sort").machines[0]
    small = type(machine)(machine.cpu, 8, "gpu y", "13.0", gpus=1, gpu_bytes=8 * MB)
    size = stage_size(pipeline_of("sort", machines=(small,)), batch_of(1, 10 * MB))
    assert size.gpu_parts == 5
    assert size.time(Line(2.0, 0.0), 1.0, "gpu").summed == 10.0


@pytest.mark.parametrize(
    ("choice", "path", "devices"),
    [
        ("spark", "spark", []),
        ("panes", "panes", []),
        ("cpu", "columnar", ["cpu", "cpu"]),
        ("gpu", "columnar", ["gpu", "gpu"]),
    ],
)
def test_a_query_that_insists_gets_its_way_whatever_it_costs(
    choice: DeviceChoice, path: PathName, devices: list[str]
) -> None:
    pipeline = pipeline_of("filter", "sort", devices=choice)
    for size in (1, 100 * MB):
        planning = Planning.of(pipeline, batch_of(1, size), costs_of(pipeline, DEFAULT_LINES))
        plan = forced_plan(planning)
        assert (plan.path, devices_of(plan)) == (path, devices)
        assert plan.reason == f"devices are set to {choice}"
        assert plan.must_not_fall_back == (choice == "gpu")
    assert pipeline_problem(pipeline) is None


@pytest.mark.parametrize("choice", ["panes", "cpu"])
def test_a_plan_that_cannot_do_what_its_query_insists_on_is_left_to_spark(
    choice: DeviceChoice,
) -> None:
    pipeline = pipeline_of(devices=choice, paths=("spark",), windows=12)
    plan = forced_plan(Planning.of(pipeline, batch_of(1, KB), costs_of(pipeline, DEFAULT_LINES)))
    assert plan.path == "spark"
    assert "this plan cannot do that" in plan.reason


def test_a_forced_gpu_without_one_is_refused_in_a_sentence() -> None:
    problem = pipeline_problem(pipeline_of("sort", devices="gpu", machines=(CPU_MACHINE,)))
    assert problem is not None
    assert "no machine has a GPU; give every machine one, or set auto" in problem
    both = (CPU_MACHINE, GPU_MACHINE)
    mixed = pipeline_problem(pipeline_of("sort", devices="gpu", machines=both))
    assert mixed is not None
    assert "1 of 2 machines have no GPU" in mixed
    left = pipeline_problem(pipeline_of(devices="gpu", paths=("spark", "panes")))
    assert left is not None
    assert "left to Spark" in left


@pytest.mark.parametrize(
    ("policy", "size", "devices"),
    [
        ("lmstream", 100 * KB, ["cpu", "cpu", "cpu"]),
        ("lmstream", 200 * KB, ["gpu", "gpu", "gpu"]),
        ("static", 10 * MB, ["gpu", "cpu", "gpu"]),
        ("all-cpu", 10 * MB, ["cpu", "cpu", "cpu"]),
        ("all-gpu", 1, ["gpu", "gpu", "gpu"]),
    ],
)
def test_other_policies_run_on_the_columnar_path(
    policy: PlanPolicy, size: int, devices: list[str]
) -> None:
    pipeline = pipeline_of("sort", "filter", "sort", policy=policy)
    planning = Planning.of(pipeline, batch_of(1, size, size), costs_of(pipeline, DEFAULT_LINES))
    plan = policy_plan(planning, 150 * KB)
    assert (plan.path, devices_of(plan), plan.policy) == ("columnar", devices, policy)
    without = pipeline_of("sort", policy=policy, machines=(CPU_MACHINE,))
    planning = Planning.of(without, batch_of(1, size), costs_of(without, DEFAULT_LINES))
    assert devices_of(policy_plan(planning, 150 * KB)) == ["cpu"]
    outside = pipeline_of(policy=policy, paths=("spark", "panes"))
    planning = Planning.of(outside, batch_of(1, size), costs_of(outside, DEFAULT_LINES))
    assert policy_plan(planning, 150 * KB).path == "panes"


FAST_GPU = {f"{kind}@gpu": Line(1e-6, 1e-12) for kind in ("parse", "sort")}


@pytest.mark.parametrize("policy", ["ours", "lmstream", "static", "all-gpu"])
def test_what_a_gpu_does_not_take_is_never_planned_for_it(policy: PlanPolicy) -> None:
    """By a calibration that says it would be free there."""
    pipeline = pipeline_of("parse", "sort", policy=policy, paths=("columnar",))
    costs = costs_of(pipeline, {**DEFAULT_LINES, **FAST_GPU})
    planning = Planning.of(pipeline, batch_of(1, 50 * MB), costs)
    plan = (
        our_plan(planning, planning.ways(), None)
        if policy == "ours"
        else policy_plan(planning, 150 * KB)
    )
    assert devices_of(plan) == ["cpu", "gpu"]
    assert plan.expected_ms is not None
    assert math.isfinite(plan.expected_ms)
    assert "gpu does not take parse" in plan.operations[0].reason
    assert "gpu" not in planning.ways()
    assert pipeline_inflection(costs) is None
    problem = pipeline_problem(pipeline_of("parse", "sort", devices="gpu"))
    assert problem is not None
    assert "a GPU does not take parse" in problem


def test_ours_can_be_held_to_the_columnar_path_where_there_is_one() -> None:
    """Panes were measured and are by far the cheapest here."""
    known = {**DEFAULT_LINES, "path@panes": Line(0.001, 1e-10)}
    for paths, taken in (
        (("spark", "panes", "columnar"), "columnar"),
        (("spark", "panes"), "panes"),
    ):
        pipeline = pipeline_of("filter", "sort", policy="ours-columnar", paths=paths)
        planning = Planning.of(pipeline, batch_of(1, 10 * MB), costs_of(pipeline, known))
        plan = our_plan(planning, planning.ways(), None)
        assert (plan.path, plan.policy) == (taken, "ours-columnar")
        whole = pipeline_of("filter", "sort", paths=paths)
        free = Planning.of(whole, batch_of(1, 10 * MB), costs_of(whole, known))
        assert our_plan(free, free.ways(), None).path == "panes"


def test_a_path_that_was_never_measured_has_to_be_better_by_a_margin() -> None:
    pipeline = pipeline_of("filter", paths=("panes", "columnar"), machines=(CPU_MACHINE,))
    known = {"path@panes": Line(10.0, 1e-6)}
    planning = Planning.of(pipeline, batch_of(1, 100 * KB), costs_of(pipeline, known))
    ways = planning.ways()
    assert ways["panes"].is_measured
    assert not ways["cpu"].is_measured
    assert ways["cpu"].reckoned_ms == pytest.approx(UNMEASURED_FACTOR * ways["cpu"].time.wall)
    assert "(not measured)" in our_plan(planning, ways, None).reason


@given(st.integers(0, 1_000), st.lists(st.integers(0, 50 * MB), max_size=6))
def test_no_way_that_was_reckoned_is_cheaper_than_the_one_taken(
    seed: int, sizes: list[int]
) -> None:
    lines = true_lines(random.Random(seed))
    pipeline = pipeline_of("parse", "filter", "join", "aggregate", windows=1 + seed % 30)
    planning = Planning.of(pipeline, batch_of(1, *sizes), costs_of(pipeline, lines))
    ways = planning.ways()
    best = cheapest_way(ways)
    assert all(best.reckoned_ms <= each.reckoned_ms for each in ways.values())
    plan = our_plan(planning, ways, None)
    assert plan.path == best.path
    assert all(operation.reason for operation in plan.operations)
    assert bool(plan.operations) == (plan.path == "columnar")


def test_costs_follow_what_batches_report() -> None:
    pipeline = pipeline_of("filter", "aggregate", windows=6)
    truth = TrueMachine(true_lines(random.Random(7)), noise=0.0, windows=6)
    costs = costs_of(pipeline, DEFAULT_LINES)
    luck = random.Random(8)
    for cut in range(1, 200):
        batch = batch_of(cut, *[round(luck.lognormvariate(13.0, 1.0))] * 2)
        ways = Planning.of(pipeline, batch, costs).ways()
        planning = Planning.of(pipeline, batch, costs)
        plan = our_plan(planning, ways, ways[luck.choice(sorted(ways))])
        ran = truth.run(plan, batch).plan
        assert ran is not None
        costs.learn(ran)
    for index, kind in enumerate(("filter", "aggregate")):
        for size in (2e5, 1e6):
            gpu = truth.lines[f"{kind}@gpu"].at(size)
            assert costs.operation(index, "gpu").at(size) == pytest.approx(gpu, rel=0.1)
    both_ms = sum(truth.lines[f"{kind}@cpu"].at(1e6) for kind in ("filter", "aggregate"))
    assert costs.line_on("cpu").at(1e6) == pytest.approx(both_ms, rel=0.1)
    assert costs.path("panes").at(1e6) == pytest.approx(truth.lines["path@panes"].at(1e6), rel=0.1)
    spark_ms = truth.lines["path@spark"].at(6e6)
    assert costs.path("spark").at(1e6) == pytest.approx(spark_ms, rel=0.1)


def test_bytes_that_shrink_on_the_way_are_learned_by_operation() -> None:
    pipeline = pipeline_of("filter", "sort")
    costs = costs_of(pipeline, DEFAULT_LINES)
    assert (costs.share(0), costs.share(1), costs.share(2)) == (1.0, 0.5, 0.5)
    steps = (
        OperationReport(0, "cpu", 2.0, 1_000, 100, 2),
        OperationReport(1, "gpu", 2.0, 100, 10, 2),
    )
    costs.learn(PlanReport("columnar", 10.0, 2, 1_000, 100, 5.0, operations=steps))
    assert costs.share(1) == pytest.approx(0.1)


def test_a_report_that_names_operations_that_are_not_there_changes_nothing() -> None:
    pipeline = pipeline_of("filter")
    costs = costs_of(pipeline, DEFAULT_LINES)
    before = costs.operation(0, "cpu")
    steps = (OperationReport(0, "cpu", 99.0, 1_000, 100, 1, 2), OperationReport(7, "cpu", 99.0))
    costs.learn(PlanReport("columnar", 10.0, 1, 1_000, 100, 5.0, operations=steps))
    costs.learn(PlanReport("panes"))
    assert costs.operation(0, "cpu") == before


def test_the_inflection_point_is_where_lines_cross() -> None:
    assert inflection_bytes(Line(1.0, 3e-6), Line(2.0, 1e-6)) == pytest.approx(5e5)
    assert inflection_bytes(Line(2.0, 3e-6), Line(1.0, 1e-6)) == 0.0
    assert inflection_bytes(Line(1.0, 1e-6), Line(2.0, 1e-6)) is None


@pytest.mark.parametrize(
    ("kind", "measured_kb"),
    [("filter", 1_047), ("expand", 628), ("aggregate", 2_247), ("join", 1_005), ("sort", 187),
     ("topk", 579)],
)  # fmt: skip
def test_the_costs_we_ship_cross_where_they_did_on_a_gpu_that_was_measured(
    kind: OperationKind, measured_kb: float
) -> None:
    """The figures of docs/bench/devices.md, to the factor that learned points are held to."""
    point = pipeline_inflection(costs_of(pipeline_of(kind), {}))
    assert point is not None
    assert 1 / 1.5 < point / (measured_kb * KB) < 1.5


def test_by_the_costs_we_ship_moving_a_byte_takes_longer_than_projecting_it() -> None:
    assert pipeline_inflection(costs_of(pipeline_of("project"), {})) is None


def test_batches_go_by_panes_until_these_and_another_way_were_measured() -> None:
    """The costs we ship say that Spark, or a worker, is cheaper: nobody has measured that."""
    pipeline = pipeline_of("filter", machines=(CPU_MACHINE,), windows=1)
    for size in (KB, 50 * MB):
        costs = costs_of(pipeline, {})
        planning = Planning.of(pipeline, batch_of(1, size), costs)
        plan = our_plan(planning, planning.ways(), None)
        assert plan.path == "panes"
        assert plan.reason.startswith("panes before anything is measured: ")
        assert plan.bytes == size
        costs.learn(PlanReport("panes", 10_000.0, 1, size, 9))
        planning = Planning.of(pipeline, batch_of(2, size), costs)
        plan = our_plan(planning, planning.ways(), None)
        assert plan.path == "panes"
        assert plan.reason.startswith("cheapest of those that were measured: ")
        costs.learn(PlanReport("spark", 10.0, 1, size, 9))
        planning = Planning.of(pipeline, batch_of(3, size), costs)
        assert our_plan(planning, planning.ways(), None).path == "spark"


def test_a_device_is_left_alone_until_each_operation_was_measured_there() -> None:
    pipeline = pipeline_of("filter", "sort")
    costs = costs_of(pipeline, {"path@panes": Line(1_000.0, 1e-6)})
    steps = (OperationReport(0, "cpu", 1.0, MB), OperationReport(1, "cpu", 1.0, MB))
    costs.learn(PlanReport("columnar", 100.0, 1, MB, 9, 98.0, operations=steps))
    ways = Planning.of(pipeline, batch_of(1, MB), costs).ways()
    assert (ways["cpu"].is_tried, ways["gpu"].is_tried) == (True, False)
    assert cheapest_way(ways).way == "cpu"
