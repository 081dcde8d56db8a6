"""Probes whose workers had to start: how often, and what they teach."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.devices.components import DEFAULT_LINES
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.devices.query_planning import WORKER_START_MS
from penstock.devices.tuning import PROBE_EVERY, PROBE_FROM
from penstock.devices.worker_path import WORKERS_KEPT_MS
from penstock.model.device_plans import BatchPlan, PipelineBody
from support.device_worlds import CPU_MACHINE, TrueMachine, batch_of, pipeline_of

KB, MB = 1_000, 1_000_000
QUICK_WORKERS = {**DEFAULT_LINES, "worker": DEFAULT_LINES["to_gpu"]}
"""In workers a batch takes next to nothing once they are there, less than is thought."""
TWO_WAYS = pipeline_of("filter", machines=(CPU_MACHINE,), paths=("panes", "columnar"))


def plans_of(
    batches: int,
    interval_ms: float,
    pipeline: PipelineBody = TWO_WAYS,
    cold: frozenset[int] = frozenset(),
    start_ms: float = WORKER_START_MS,
    size: int = 200 * KB,
) -> list[BatchPlan]:
    """The plans of batches so far apart, each reported before the next. Workers end as Spark's do,
    and before the batches that are `cold`."""
    truth = TrueMachine(QUICK_WORKERS, noise=0.0, windows=pipeline.windows)
    planner = DevicePlanner(NoCalibrations())
    plans: list[BatchPlan] = []
    used_at_ms: float | None = None
    for cut in range(1, batches + 1):
        at_ms = cut * interval_ms
        batch = replace(batch_of(cut, size, size), at_ms=at_ms)
        plan = planner.plan("q", pipeline, batch)
        plans.append(plan)
        report = truth.run(plan, batch)
        assert report.plan is not None
        if plan.path == "columnar":
            is_cold = used_at_ms is None or at_ms - used_at_ms >= WORKERS_KEPT_MS or cut in cold
            used_at_ms = at_ms
            if is_cold:
                ran = report.plan
                ran = replace(
                    ran,
                    stage_ms=ran.stage_ms + 2 * start_ms,
                    worker_ms=ran.worker_ms + 2 * start_ms,
                    started_workers=2,
                )
                report = replace(report, plan=ran)
        planner.heard("q", pipeline, [report])
        planner.tune("q")
    return plans


def probed(plans: list[BatchPlan]) -> list[int]:
    return [number for number, plan in enumerate(plans) if plan.is_probe]


def test_a_probe_that_had_to_start_workers_teaches_nothing_and_is_repeated_in_its_turn() -> None:
    """Batches a second apart: fifty later the workers are still there."""
    plans = plans_of(120, 1_000.0)
    assert [plan.path for plan in plans[:7]] == ["panes"] * 4 + ["columnar"] + ["panes"] * 2
    assert probed(plans) == [PROBE_FROM, PROBE_FROM + PROBE_EVERY, PROBE_FROM + 2 * PROBE_EVERY]
    after = plans[PROBE_FROM + PROBE_EVERY :]
    assert {plan.path for plan in after if not plan.is_probe} == {"columnar"}


def test_where_workers_end_between_probes_the_second_one_teaches_without_their_start() -> None:
    """Batches ten seconds apart, which keep workers that each of them uses."""
    plans = plans_of(120, 10_000.0)
    first, second, *_ = probed(plans)
    assert (first, second) == (PROBE_FROM, PROBE_FROM + PROBE_EVERY)
    assert {plan.path for plan in plans[:second]} - {"panes"} == {"columnar"}
    expected = plans[second + 1].reason
    assert "cpu" in expected
    assert "(not measured)" not in expected


def test_a_start_that_takes_longer_than_is_thought_is_charged_to_the_way() -> None:
    """By the costs that were known workers are the cheapest: Spark makes 12 rows of one."""
    pipeline = pipeline_of(
        "filter", machines=(CPU_MACHINE,), paths=("spark", "columnar"), windows=12
    )
    quick, slow = (
        {plan.path for plan in plans_of(60, 10_000.0, pipeline, start_ms=ms, size=8 * MB)[55:]}
        for ms in (WORKER_START_MS / 2, 4 * WORKER_START_MS)
    )
    assert (quick, slow) == ({"columnar"}, {"spark"})


@settings(max_examples=30)
@given(
    interval_ms=st.sampled_from([100.0, 1_000.0, 1_300.0, 10_000.0, 90_000.0]),
    cold=st.frozensets(st.integers(1, 400), max_size=400),
    has_gpu=st.booleans(),
)
def test_of_fifty_batches_in_a_row_one_is_a_probe_whether_workers_were_there_or_not(
    interval_ms: float, cold: frozenset[int], has_gpu: bool
) -> None:
    pipeline = pipeline_of("filter", "sort") if has_gpu else TWO_WAYS
    numbers = probed(plans_of(400, interval_ms, pipeline, cold))
    assert numbers[0] >= PROBE_FROM
    assert all(after - before >= PROBE_EVERY for before, after in itertools.pairwise(numbers))
