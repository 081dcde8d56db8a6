"""Inflection points in seeded worlds: machines whose costs are not what they are thought to be.

A world has a chain of operations, costs that nobody told the planner, and batches of random size
around the true inflection point. The planner begins with costs by which that point is ten times too
high or too low, and sees nothing but what the batches report.
"""

from __future__ import annotations

import math
import random
from typing import Literal, get_args

import pytest

from penstock.devices.calibration import MachineCosts
from penstock.devices.components import (
    DEFAULT_LINES,
    GPU_REFUSES,
    OUTPUT_SHARE,
    TO_CPU,
    TO_GPU,
    operation_part,
)
from penstock.devices.costs import inflection_bytes
from penstock.devices.explain import pipeline_inflection
from penstock.devices.query_planning import QueryPlanning
from penstock.devices.tuning import BYTES_MAX, BYTES_MIN, PROBE_EVERY, START_BYTES
from penstock.fit.line import Line
from penstock.model.device_plans import OperationKind, PipelineBody
from support.device_worlds import (
    TrueMachine,
    batch_of,
    machine_costs,
    pipeline_of,
    true_lines,
)

BATCHES = 100
FACTOR = 1.5
WORLDS = 60
MISSED_MAX = 3
TASKS_MAX = 4
CLEAR_FACTOR = 2.0


def _line(fixed_ms: float, gb_per_s: float) -> Line:
    return Line(fixed_ms, 1e-6 / gb_per_s)


APART_LINES = DEFAULT_LINES | {
    "filter@cpu": _line(0.02, 1.0),
    "filter@gpu": _line(0.3, 50.0),
    "project@cpu": _line(0.02, 1.25),
    "project@gpu": _line(0.1, 50.0),
    "expand@cpu": _line(0.02, 0.5),
    "expand@gpu": _line(0.2, 20.0),
    "aggregate@cpu": _line(0.05, 0.25),
    "aggregate@gpu": _line(1.5, 10.0),
    "join@cpu": _line(0.05, 0.125),
    "join@gpu": _line(0.5, 5.0),
    "sort@cpu": _line(0.05, 0.1),
    "sort@gpu": _line(0.6, 5.0),
    "topk@cpu": _line(0.05, 0.3),
    "topk@gpu": _line(0.6, 10.0),
    TO_GPU: _line(0.03, 12.0),
    TO_CPU: _line(0.03, 12.0),
}
"""Costs of a slow core and quick transfers, by which whole chains go to one device or the other."""
OPERATIONS_MAX = 5
Error = Literal["fixed costs of the GPU", "costs of a byte on the CPU"]
ERRORS: tuple[Error, ...] = get_args(Error)
KINDS: tuple[OperationKind, ...] = tuple(
    kind for kind in get_args(OperationKind) if kind not in GPU_REFUSES
)


class DeviceWorld:
    """One world; `believed_factor` is how far off the inflection point is at first. Unless
    `is_chain` it is of one operation, on a machine like those whose costs we ship."""

    def __init__(
        self, seed: int, believed_factor: float, error: Error, *, is_chain: bool = True
    ) -> None:
        luck = random.Random(seed)
        self.luck = luck
        self.is_chain = is_chain
        self._draw()
        while not self._has_clear_point():
            self._draw()
        self.point = self.truth.inflection_bytes(self.kinds)
        self.centre = self.point * luck.uniform(0.5, 2.0)
        self.spread = luck.uniform(0.4, 1.0)
        self.tasks = luck.randint(1, TASKS_MAX)
        self.believed = machine_costs(self._wrong_lines(believed_factor, error))

    def _draw(self) -> None:
        count = self.luck.randint(1, OPERATIONS_MAX) if self.is_chain else 1
        self.kinds = tuple(self.luck.choices(KINDS, k=count))
        lines = true_lines(self.luck, APART_LINES if self.is_chain else DEFAULT_LINES)
        self.truth = TrueMachine(lines, self.luck, shares=self._true_shares())

    def _has_clear_point(self) -> bool:
        """Whether a byte takes so much less on the GPU, transfers included, that it pays at a
        certain size: a projection by itself is done before its rows are moved."""
        cpu, gpu = (self.truth.all_on(self.kinds, device) for device in ("cpu", "gpu"))
        return cpu.slope > CLEAR_FACTOR * gpu.slope and gpu.fixed > cpu.fixed

    def _true_shares(self) -> tuple[float, ...]:
        """Bytes that shrink on the way, not quite as one thinks before they are measured."""
        shares = [1.0]
        for kind in self.kinds:
            usual = OUTPUT_SHARE.get(kind, 1.0)
            shares.append(shares[-1] * min(usual * self.luck.uniform(0.5, 2.0), 1.0))
        return tuple(shares)

    def _wrong_lines(self, factor: float, error: Error) -> dict[str, Line]:
        """The true costs, but for some that move the inflection point by a factor."""
        cpu, gpu = (self.truth.all_on(self.kinds, device) for device in ("cpu", "gpu"))
        gap = gpu.fixed - cpu.fixed
        scale = (cpu.fixed + factor * gap) / gpu.fixed
        parts = [TO_GPU, TO_CPU, *(operation_part(kind, "gpu") for kind in self.kinds)]
        if error == "costs of a byte on the CPU":
            scale = (gpu.slope + (cpu.slope - gpu.slope) / factor) / cpu.slope
            parts = [operation_part(kind, "cpu") for kind in self.kinds]
        lines = dict(self.truth.lines)
        for part in set(parts):
            line = lines[part]
            if error == "costs of a byte on the CPU":
                lines[part] = Line(line.fixed, line.slope * scale)
            else:
                lines[part] = Line(line.fixed * scale, line.slope)
        return lines

    def pipeline(self, **more: object) -> PipelineBody:
        """Every task may have the GPU."""
        return pipeline_of(*self.kinds, paths=("columnar",), gpu_workers=TASKS_MAX, **more)

    def tell_shares(self, planning: QueryPlanning) -> None:
        """Have bytes shrink as in truth, so that costs are compared by themselves."""
        for known, share in zip(planning.costs._shares, self.truth.shares, strict=True):
            known.add(share)

    def run(self, planning: QueryPlanning, batches: int) -> list[bool]:
        """Plan, run and report batches; which of them were probes."""
        probes = []
        for cut in range(1, batches + 1):
            size = round(self.centre * self.luck.lognormvariate(0.0, self.spread))
            batch = batch_of(cut, *[size] * self.tasks)
            plan = planning.plan(planning.pipeline, batch)
            planning.learn(self.truth.run(plan, batch))
            probes.append(plan.is_probe)
        return probes


def off_by(point: float | None, truth: float) -> float:
    """The factor between two points; infinite if there is none."""
    if not point:
        return math.inf
    return max(point / truth, truth / point)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_world_is_as_far_off_as_it_says(factor: float, error: Error) -> None:
    world = DeviceWorld(1, factor, error)
    planning = QueryPlanning(world.pipeline(), [world.believed])
    world.tell_shares(planning)
    believed = inflection_bytes(planning.costs.line_on("cpu"), planning.costs.line_on("gpu"))
    assert believed is not None
    assert believed / world.point == pytest.approx(factor, rel=0.01)


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("factor", [0.1, 10.0])
@pytest.mark.parametrize("is_chain", [True, False])
def test_the_inflection_point_is_found_within_a_hundred_batches(
    factor: float, error: Error, is_chain: bool, seeds: range
) -> None:
    """A probe may be one of the few measurements that are five times too long, and there are two
    of them in a hundred batches; so of sixty worlds three may be off by more."""
    missed = []
    for seed in seeds[:WORLDS]:
        world = DeviceWorld(seed, factor, error, is_chain=is_chain)
        planning = QueryPlanning(world.pipeline(), [world.believed])
        probes = world.run(planning, BATCHES)
        assert max(sum(probes[start : start + PROBE_EVERY]) for start in range(BATCHES)) <= 1
        off = off_by(pipeline_inflection(planning.costs), world.point)
        if off > FACTOR:
            missed.append((seed, world.kinds, round(off, 2)))
    assert len(missed) <= MISSED_MAX, missed


def test_eq_10_stays_at_its_start_as_printed_and_within_bounds_with_probes(
    few_seeds: range,
) -> None:
    for seed in few_seeds:
        world = DeviceWorld(seed, 10.0, "fixed costs of the GPU")
        planning = QueryPlanning(world.pipeline(policy="lmstream"), [world.believed])
        first = world.run(planning, 4)
        assert not any(first)
        assert planning.tuning.inflection_bytes == pytest.approx(START_BYTES)
        probes = world.run(planning, 200)
        assert any(probes)
        assert BYTES_MIN <= planning.tuning.inflection_bytes <= BYTES_MAX


def test_a_machine_learns_for_the_queries_after(few_seeds: range) -> None:
    for seed in few_seeds:
        world = DeviceWorld(seed, 10.0, "fixed costs of the GPU")
        machine: MachineCosts = world.believed
        world.run(QueryPlanning(world.pipeline(), [machine]), BATCHES)
        after = QueryPlanning(world.pipeline(), [machine])
        world.tell_shares(after)
        assert off_by(pipeline_inflection(after.costs), world.point) < 3.0
