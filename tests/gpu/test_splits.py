"""A GPU that is full: rows are split, or it is told that they do not fit."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from types import ModuleType

import msgspec
import pyarrow as pa
import pytest

from penstock.devices.gpu.backend import Array
from penstock.devices.gpu.execution import PART_ROWS_MIN, added_times, execute
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Numbers, Rows
from penstock.devices.pipeline import (
    DEVICE_MODULES,
    DeviceRefused,
    EventTimes,
    Filter,
    Grouped,
    Pipeline,
    Project,
    Sorted,
    Step,
)
from penstock.devices.pipeline import execute as execute_on_cpu
from penstock.devices.placement import run_placed
from support.columns import call, column, listed, literal
from support.host_device import HostBackend, HostGpu, cuda_error

MANY = 10 * PART_ROWS_MIN
TOTAL = Aggregate("sum", (column(1),), "bigint", "bigint")
NUMBERS = Rows((pa.array([n % 7 for n in range(MANY)]), pa.array(range(MANY))), MANY)
ROW_BYTES = 16


def small_gpu(rows_held: int) -> HostGpu:
    return HostGpu(HostBackend(rows_held * ROW_BYTES))


def test_rows_that_do_not_fit_are_split_and_their_groups_have_several_parts() -> None:
    gpu = small_gpu(MANY // 3)
    made, report = execute(Pipeline((Grouped((column(0),), (TOTAL,)),)), NUMBERS, gpu=gpu)
    totals: Counter[int] = Counter()
    for key, total in listed(made):
        totals[key] += total
    whole, _ = execute_on_cpu(Pipeline((Grouped((column(0),), (TOTAL,)),)), NUMBERS)
    assert totals == dict(listed(whole))
    assert (made.count, report.splits) == (4 * 7, 4)
    assert gpu.backend.frees == 3
    assert (report.rows, report.step_rows) == (MANY, (MANY,))


@pytest.mark.parametrize("count", [None, 5])
def test_an_order_is_made_again_of_the_orders_of_parts(count: int | None) -> None:
    by = (SortKey(column(0)), SortKey(column(1), is_descending=True))
    steps: tuple[Step, ...] = (
        Filter(call("greater", "boolean", column(1), literal("bigint", 2))),
        Sorted(by, count),
    )
    made, report = execute(Pipeline(steps), NUMBERS, gpu=small_gpu(MANY // 2))
    assert listed(made) == listed(execute_on_cpu(Pipeline(steps), NUMBERS)[0])
    assert report.splits == 2


def test_groups_that_a_later_step_counts_are_not_split() -> None:
    steps = (Grouped((column(0),), (TOTAL,)), Sorted((SortKey(column(1)),), 1))
    with pytest.raises(DeviceRefused, match="do not fit") as refused:
        execute(Pipeline(steps), NUMBERS, gpu=small_gpu(MANY // 2))
    assert refused.value.cause == "full"


def test_groups_are_not_split_where_a_step_on_another_device_counts_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each group has more rows than the filter asks for, and each part of one has fewer."""
    gpu = small_gpu(MANY // 3)
    module = ModuleType("small_gpu")
    module.execute = partial(execute, gpu=gpu)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "small_gpu", module)
    monkeypatch.setitem(DEVICE_MODULES, "gpu", "small_gpu")
    count = Aggregate("count", (column(1),), "bigint", "bigint")
    large = Filter(call("greater", "boolean", column(1), literal("bigint", MANY // 10)))
    pipeline = Pipeline((Grouped((column(0),), (count,)), large))
    whole, _ = run_placed(pipeline, NUMBERS)
    made, report = run_placed(msgspec.structs.replace(pipeline, devices=("gpu", "cpu")), NUMBERS)
    assert sorted(listed(made)) == sorted(listed(whole))
    assert whole.count == 7
    assert ([each.cause for each in report.fallbacks], report.splits) == (["full"], 0)


def test_a_device_without_room_for_a_part_is_full() -> None:
    with pytest.raises(DeviceRefused) as refused:
        execute(Pipeline((Project((column(0),)),)), NUMBERS, gpu=small_gpu(1))
    assert refused.value.cause == "full"


def test_event_times_of_parts_are_those_of_the_whole() -> None:
    first, second = EventTimes(1, 5, 5, 5.0), EventTimes(3, 1, 9, 3.0)
    assert added_times(first, second) == EventTimes(4, 1, 9, 3.5)
    assert added_times(None, second) == added_times(second, None) == second
    assert added_times(None, None) is None


class UnpinnedBackend(HostBackend):
    """A device beside a host that has no room for the buffer of an upload."""

    def upload(self, arrays: Sequence[Numbers]) -> list[Array]:
        try:
            return super().upload(arrays)
        except MemoryError as error:
            raise cuda_error(2) from error


def test_rows_are_split_too_where_the_host_has_no_room_for_their_transfer() -> None:
    gpu = HostGpu(UnpinnedBackend(MANY // 2 * ROW_BYTES))
    steps = (Filter(call("greater", "boolean", column(1), literal("bigint", 2))),)
    made, report = execute(Pipeline(steps), NUMBERS, gpu=gpu)
    assert listed(made) == listed(execute_on_cpu(Pipeline(steps), NUMBERS)[0])
    assert report.splits == 2
