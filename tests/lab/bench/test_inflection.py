"""Inflection points as the devices suite finds them, on machines whose costs a test knows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

import pytest

from penstock.devices.components import TO_CPU, TO_GPU, operation_part
from penstock.fit.line import Line
from penstock.model.device_plans import Device, OperationKind
from penstock_lab.experiment.worker import Job
from penstock_lab.measure import operation_times
from penstock_lab.measure.inflection import (
    FACTORS,
    OperationRun,
    crossing,
    fitted_costs,
    learned_point,
    off_by,
    relative_fit,
    sizes_around,
    unclear,
    wrong_costs,
)
from support.device_worlds import true_lines

ROW_BYTES = 32
SIZES = tuple(4_096 * 4**step for step in range(7))
KIND: OperationKind = "sort"


class KnownMachine:
    """Runs an operation in the time that its lines say, and a little more or less."""

    def __init__(self, seed: int, noise: float = 0.05) -> None:
        self.luck = random.Random(seed)
        self.lines = true_lines(self.luck)
        self.noise = noise

    def execute(self, device: Device, size: int) -> OperationRun:
        ms = self._ms(operation_part(KIND, device), size)
        if device == "cpu":
            return OperationRun(size, ms)
        return OperationRun(size, ms, self._ms(TO_GPU, size), size, self._ms(TO_CPU, size), size)

    def _ms(self, part: str, size: int) -> float:
        return self.lines[part].at(size) * self.luck.lognormvariate(0.0, self.noise)

    @property
    def truth(self) -> float:
        parts = [self.lines[part] for part in (operation_part(KIND, "gpu"), TO_GPU, TO_CPU)]
        cpu = self.lines[operation_part(KIND, "cpu")]
        gap = sum(line.fixed for line in parts) - cpu.fixed
        return gap / (cpu.slope - sum(line.slope for line in parts))


def test_devices_cross_between_two_sizes_by_their_ratios() -> None:
    cpu = {1_000: 1.0, 4_000: 4.0, 16_000: 16.0}
    assert crossing(cpu, {1_000: 2.0, 4_000: 2.0, 16_000: 2.0}) == pytest.approx(2_000)
    assert crossing(cpu, {1_000: 0.5, 4_000: 0.5, 16_000: 0.5}) is None
    assert crossing(cpu, {1_000: 90.0, 4_000: 90.0, 16_000: 90.0}) is None
    # Once more dearer than the CPU: it is the last crossing that counts.
    assert crossing(cpu, {1_000: 0.5, 4_000: 8.0, 16_000: 8.0}) == pytest.approx(8_000)


def test_a_line_is_fitted_to_sizes_of_all_magnitudes_alike() -> None:
    line = Line(0.4, 2e-6)
    fitted = relative_fit([(size, line.at(size)) for size in SIZES])
    assert fitted.fixed == pytest.approx(0.4)
    assert fitted.slope == pytest.approx(2e-6)
    falling = relative_fit([(size, 1e-6 * size * (1 - 1e-9 * size)) for size in SIZES])
    assert falling.fixed > 0
    assert falling.slope > 0


@pytest.mark.parametrize("factor", FACTORS)
def test_ours_finds_the_point_from_a_start_that_is_ten_times_off(factor: float) -> None:
    errors = []
    for seed in range(12):
        machine = KnownMachine(seed)
        swept = [[machine.execute(device, size) for size in SIZES] for device in ("cpu", "gpu")]
        costs = fitted_costs(*swept)
        point = learned_point(KIND, "ours", factor, costs, machine.truth, machine.execute, 100)
        assert point is not None
        errors.append(off_by(point.found_bytes, machine.truth))
    assert sorted(errors)[-2] < 1.5, errors


def test_a_start_is_as_wrong_as_it_says() -> None:
    machine = KnownMachine(1, noise=0.0)
    swept = [[machine.execute(device, size) for size in SIZES] for device in ("cpu", "gpu")]
    costs = fitted_costs(*swept)
    believed = wrong_costs(KIND, costs, machine.truth, 10.0)
    assert believed is not None
    parts = [believed.line(part) for part in (operation_part(KIND, "gpu"), TO_GPU, TO_CPU)]
    cpu = believed.line(operation_part(KIND, "cpu"))
    gap = sum(line.fixed for line in parts) - cpu.fixed
    point = gap / (cpu.slope - sum(line.slope for line in parts))
    assert point / machine.truth == pytest.approx(10.0, rel=0.01)


def test_a_worker_measures_sizes_on_both_devices_and_what_is_learned_about_them() -> None:
    machine = KnownMachine(3)
    asked: list[tuple[str, int]] = []

    def run(device: Device, kind: OperationKind, rows: int) -> OperationRun:
        asked.append((device, rows))
        return machine.execute(device, rows * ROW_BYTES)

    options = operation_times.Options(KIND, SIZES, seconds=0.0, batches=100)
    sizes = operation_times.measured_sizes(options, run)
    assert [(each.bytes, each.rows) for each in sizes] == [(s, s // ROW_BYTES) for s in SIZES]
    assert all(each.cpu_ms > 0 and each.transfer_ms > 0 for each in sizes)
    assert asked.count(("gpu", SIZES[-1] // ROW_BYTES)) == 1 + operation_times.RUNS_MIN
    learned = operation_times.learned(options, run)
    assert off_by(learned["measured_bytes"], machine.truth) < 1.3
    starts = {(point["policy"], point["factor"]) for point in learned["points"]}
    assert starts == {(name, factor) for name in ("ours", "lmstream") for factor in FACTORS}


def test_a_device_that_is_cheaper_at_every_size_has_no_point() -> None:
    def run(device: Device, kind: OperationKind, rows: int) -> OperationRun:
        return OperationRun(rows * ROW_BYTES, 1.0 if device == "cpu" else 2.0)

    options = operation_times.Options(KIND, SIZES, seconds=0.0)
    learned = operation_times.learned(options, run)
    assert learned["measured_bytes"] is None
    assert "the CPU is cheaper from 4,096" in learned["reason"]


def test_devices_that_cross_without_parting_have_no_clear_point() -> None:
    cpu = {size: 1e-6 * size for size in sizes_around(1e6)}
    level = dict.fromkeys(cpu, 1.0)
    assert unclear(cpu, level, 1e6) is None
    beside = {size: ms * (1.02 if size < 1e6 else 0.98) for size, ms in cpu.items()}
    assert "from beyond to beyond" in (unclear(cpu, beside, 1e6) or "")
    dearer = {size: 2 * ms for size, ms in cpu.items()}
    assert "do not" in (unclear(cpu, dearer, None) or "")


def test_the_point_is_measured_over_rows_that_were_just_made() -> None:
    """Runs over the same rows are half as long on the CPU, as where caches hold them."""
    last = 0

    def run(device: Device, kind: OperationKind, rows: int) -> OperationRun:
        nonlocal last
        is_again, last = rows == last, rows
        size = rows * ROW_BYTES
        if device == "gpu":
            return OperationRun(size, 1.0)
        return OperationRun(size, size * (1e-6 if is_again else 2e-6))

    learned = operation_times.learned(operation_times.Options(KIND, SIZES, seconds=0.0), run)
    assert off_by(learned["measured_bytes"], 500_000) < 1.05
    assert len(learned["sizes"]) == len(sizes_around(1.0))


@pytest.mark.parametrize("part", ["operations", "inflection"])
def test_an_operation_that_the_gpu_does_not_take_is_left_out_with_the_reason(
    part: str, tmp_path: Path
) -> None:
    """It would run on the CPU twice, and cross itself at random."""
    options = {"kind": "parse", "sizes": SIZES, "seconds": 0.0}
    answer = operation_times.main(Job(part, str(tmp_path), options))
    reason = "the GPU does not take it: parsing of text stays on the CPU"
    assert answer == {"reason": reason}
    taken = [kind for kind in get_args(OperationKind) if operation_times.left_out(kind) is None]
    assert len(taken) == len(get_args(OperationKind)) - 1
