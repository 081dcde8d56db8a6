"""Policies of planning: the paper's as printed, and the cheapest of all splits."""

from __future__ import annotations

import math
from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.mapping import gpu_absence
from penstock.devices.policies import lmstream, one_device, static
from penstock.devices.policies.ours import (
    NEVER,
    SplitTable,
    cheapest_split,
    map_devices,
    split_time,
)
from penstock.devices.policies.table import BASE_COST, PREFERENCE
from penstock.devices.stage_time import Ms, StageSize
from penstock.model.device_plans import Device, MachineBody, OperationKind

KINDS: tuple[OperationKind, ...] = get_args(OperationKind)
POINT = 150_000.0
chains = st.lists(st.sampled_from(KINDS), min_size=1, max_size=7)


def devices_at(kinds: list[OperationKind], share: float) -> list[Device]:
    return [mapped.device for mapped in lmstream.map_devices(kinds, share * POINT, POINT)]


def test_the_tables_have_every_kind_of_operation() -> None:
    assert BASE_COST.keys() == PREFERENCE.keys() == set(KINDS)


@given(chains, st.floats(0.0, 20.0))
def test_base_costs_cancel_and_all_switch_near_the_inflection_point(
    kinds: list[OperationKind], share: float
) -> None:
    if share < 0.94:
        assert set(devices_at(kinds, share)) == {"cpu"}
    if share > 1.07:
        assert set(devices_at(kinds, share)) == {"gpu"}


@pytest.mark.parametrize(
    ("kind", "ends_at"), [("filter", 1.0541), ("project", 1.0607), ("sort", 1.0690)]
)
def test_an_end_of_the_chain_switches_where_the_transition_is_paid_for(
    kind: OperationKind, ends_at: float
) -> None:
    """x² = base / (base - 0.1), as the transition is added to the GPU's side."""
    assert devices_at([kind], ends_at - 0.001) == ["cpu"]
    assert devices_at([kind], ends_at + 0.001) == ["gpu"]


def test_an_operation_after_one_on_the_gpu_pays_for_the_way_back() -> None:
    """Between 1.06 and 1.069 a sort at an end still prefers the CPU, a filter the GPU; what
    follows one on the GPU stays there already from 0.95 on."""
    assert devices_at(["filter", "filter", "sort"], 1.065) == ["gpu", "gpu", "cpu"]
    assert devices_at(["sort", "filter", "filter"], 1.0545) == ["cpu", "gpu", "gpu"]


def test_a_partition_without_bytes_stays_on_the_cpu() -> None:
    assert devices_at(["sort", "join"], 0.0) == ["cpu", "cpu"]


def test_static_preferences_are_those_of_the_table_whatever_the_size() -> None:
    mapped = static.map_devices(["parse", "project", "filter", "join", "aggregate", "sort", "topk"])
    assert [each.device for each in mapped] == ["gpu", "gpu", "cpu", "cpu", "cpu", "gpu", "gpu"]
    assert "neutral" in mapped[1].reason
    assert [each.device for each in static.map_devices(["project", "sort"])] == ["cpu", "gpu"]


def test_one_device_is_for_all() -> None:
    mapped = one_device.map_devices(["filter", "sort"], "gpu", "because")
    assert mapped == (("gpu", "because"), ("gpu", "because"))


def test_one_machine_without_a_gpu_rules_it_out() -> None:
    with_gpu, without = MachineBody("c", 4, "g", "13", gpus=1), MachineBody("c", 4, count=2)
    assert gpu_absence([with_gpu]) is None
    assert gpu_absence([]) == gpu_absence([without]) == "no machine has a GPU"
    assert gpu_absence([with_gpu, without]) == "2 of 3 machines have no GPU"


times = st.floats(0.0, 100.0).map(lambda ms: Ms(ms, ms, ms / 4))
sizes = st.builds(
    lambda tasks, cores, lanes: StageSize(tasks, 4_000, 1_000, cores, lanes),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 4),
)


@st.composite
def tables(draw: st.DrawFn) -> SplitTable:
    count = draw(st.integers(1, 6))

    def row(size: int) -> tuple[Ms, ...]:
        return tuple(draw(st.lists(times, min_size=size, max_size=size)))

    on_gpu = row(count)
    if draw(st.booleans()):
        on_gpu = (NEVER, *on_gpu[1:])
    return SplitTable(row(count), on_gpu, row(count + 1), row(count), draw(sizes))


def every_split(table: SplitTable) -> list[tuple[Device, ...]]:
    devices: tuple[Device, ...] = get_args(Device)
    return list(product(devices, repeat=len(table.on_cpu)))


@given(tables())
def test_the_dynamic_programme_finds_the_cheapest_of_all_splits(table: SplitTable) -> None:
    least_ms = min(split_time(table, split).wall for split in every_split(table))
    assert split_time(table, cheapest_split(table)).wall == pytest.approx(least_ms)


@given(tables())
def test_tasks_beyond_the_bound_never_make_a_stage_shorter_than_its_parts(
    table: SplitTable,
) -> None:
    """With all tasks in one round a stage that some of them run on the CPU takes that long."""
    on_cpu = split_time(table, table.all_on_cpu())
    for split in every_split(table):
        time = split_time(table, split)
        assert time.wall >= time.longest - 1e-9
        is_one_round = table.size.tasks <= table.size.cores
        if table.size.is_bounded and is_one_round and "gpu" in split:
            assert time.wall >= on_cpu.wall - 1e-9


@given(tables())
def test_no_operation_alone_would_be_better_elsewhere_by_its_own_reason(table: SplitTable) -> None:
    best = cheapest_split(table)
    mapped = map_devices(table, best)
    assert [each.device for each in mapped] == list(best)
    for each in mapped:
        assert each.reason.startswith(each.device)
        assert "inf" not in each.reason
        if "shorter" in each.reason and not table.size.is_bounded:
            # Rounding in sums of equal splits: never more than nothing.
            assert " 0 ms shorter" in each.reason or "e-" in each.reason


def test_a_cheap_operation_between_two_on_the_gpu_stays_there() -> None:
    fast, slow, none = Ms(1.0, 1.0), Ms(10.0, 10.0), Ms(0.5, 0.5)
    table = SplitTable(
        (slow, none, slow), (fast, fast, fast), (Ms(2.0, 2.0),) * 4, (Ms(2.0, 2.0),) * 3
    )
    assert cheapest_split(table) == ("gpu", "gpu", "gpu")
    reason = map_devices(table, ("gpu", "gpu", "gpu"))[1].reason
    assert reason == (
        "gpu 1 ms, cpu 0.5 ms; on the cpu the stage would take 3.5 ms longer, transfers included"
    )


def test_without_a_gpu_every_split_is_on_the_cpu() -> None:
    table = SplitTable((Ms(5.0, 5.0),) * 3, (NEVER,) * 3, (Ms(1.0, 1.0),) * 4, (Ms(1.0, 1.0),) * 3)
    assert cheapest_split(table) == ("cpu", "cpu", "cpu")
    assert math.isfinite(split_time(table, ("cpu", "cpu", "cpu")).wall)
    assert map_devices(table, ("cpu", "cpu", "cpu"))[0].reason == "cpu 5 ms"
