"""The prefetch suite before it runs: cells, modes and their settings, rates from backlogs."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock_lab.suites.prefetch.cells import SKEWS, SWEEPS, Cell, Workload
from penstock_lab.suites.prefetch.minutes import minutes_of
from penstock_lab.suites.prefetch.modes import MODES, OURS, PREFETCH, ROCKSDB, THRESHOLDS
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.runs import rate_of, seat_of

MIB = 2**20


def test_every_mode_has_the_same_budget() -> None:
    for mode in MODES.values():
        conf = mode.conf(8, "read1ms")
        blocks = 2 * int(conf[f"{ROCKSDB}.blockCacheSizeMB"]) * MIB
        values = int(conf[f"{PREFETCH}.cache.bytes"]) if mode.cache != "off" else 0
        assert blocks + values == 8 * MIB, mode.name
        assert conf[f"{ROCKSDB}.writeBufferSizeMB"] == "4"
        assert conf[f"{PREFETCH}.reads"] == "slow1ms"


def test_every_cache_size_is_the_share_that_its_name_says() -> None:
    for share, budget_mb in ((0.25, 2), (0.5, 4), (2.0, 16)):
        workload = Workload("q18", cache_share=share)
        assert workload.budget_mb == budget_mb
        for mode in MODES.values():
            conf = mode.conf(workload.budget_mb, "read1ms")
            blocks = 2 * int(conf[f"{ROCKSDB}.blockCacheSizeMB"]) * MIB
            values = int(conf[f"{PREFETCH}.cache.bytes"]) if mode.cache != "off" else 0
            assert blocks + values == budget_mb * MIB, mode.name


def test_a_quick_run_takes_twenty_minutes_at_most_with_three_repeats() -> None:
    plan = plan_of(quick=True)
    assert minutes_of(plan) <= 20
    assert plan.repeats >= 3
    (group,) = plan.groups
    tried = [mode for modes in plan.backlogs_of(group) for mode in modes]
    times = {mode: tried.count(mode) for mode in group.modes}
    assert times == {"lru": 1, "asyncio-lru": 3, OURS: 3}
    assert group.processes == ("asyncio-lru", OURS), "lru runs beside the same cache"


@pytest.mark.parametrize("part", SWEEPS)
def test_a_sweep_of_the_full_run_can_be_had_in_short_form(part: str) -> None:
    plan = plan_of(quick=True, parts=(part,))
    assert {group.part for group in plan.groups} == {part}
    assert plan.rated_groups == plan.groups
    assert (plan.repeats, plan.batches_min) == (3, 100)
    full = {workload.name for workload in plan_of().workloads}
    assert {workload.name for workload in plan.workloads} <= full
    short = plan_of(quick=True, parts=(part,), queries=("q20",), modes=("asyncio", OURS))
    assert {workload.query for workload in short.workloads} == {"q20"}
    assert all(group.shown == ("asyncio", OURS) for group in short.groups)
    assert minutes_of(short) < minutes_of(plan)


def test_the_parts_that_share_a_comparison_are_one_group_where_both_are_asked_for() -> None:
    (group,) = plan_of(quick=True, parts=("thresholds", "ablation")).groups
    assert {f"{OURS}-hot16", f"{OURS}-A", OURS} <= set(group.rated)


def test_a_quick_run_says_that_asyncio_has_one_cache_and_what_was_left_out() -> None:
    said = " ".join(plan_of(quick=True).left_out)
    assert "asyncio is asyncio-lru, and not the better of two caches" in said
    assert all(f"--part {part}" in said for part in SWEEPS)
    assert plan_of().left_out == ()


def test_parts_alone_take_less_time_than_all() -> None:
    whole, part = plan_of(quick=True), plan_of(quick=True, parts=("adaptation",))
    assert part.steps == 1
    assert minutes_of(part) < minutes_of(whole) / 3


def test_only_off_gives_all_of_the_budget_to_blocks() -> None:
    assert MODES["off"].conf(8, "direct")[f"{ROCKSDB}.blockCacheSizeMB"] == "4"
    assert MODES[OURS].conf(8, "direct")[f"{ROCKSDB}.blockCacheSizeMB"] == "1"
    assert MODES[OURS].conf(8, "direct")[PREFETCH] == "auto"
    assert MODES["asyncio-lru"].conf(8, "direct")[PREFETCH] == "D"


def test_a_quick_run_has_two_queries_with_state_and_a_look_up() -> None:
    plan = plan_of(quick=True)
    (group,) = plan.groups
    assert [workload.name for workload in group.workloads] == ["Q18.read1ms", "Q20.read1ms", "ysb"]
    assert group.shown == ("asyncio", OURS)
    assert "lru" in group.modes, "its backlog gives a rate"
    assert plan.repeats >= 3
    assert plan.batches > plan.batches_min == 100, "a batch may have no rows"
    assert any("skews" in sentence for sentence in plan.left_out)


def test_the_full_run_has_all_reads_skews_sizes_thresholds_and_the_ablation() -> None:
    plan = plan_of()
    names = {workload.name for workload in plan.workloads}
    assert {"Q19.read1ms", "Q20.direct", "Q13", "ysb"} <= names
    assert {f"Q18.read1ms.hot{share * 100:.0f}" for share in SKEWS} <= names
    assert {f"Q18.read1ms.cache{share}" for share in (25, 50, 200)} <= names
    assert {f"{OURS}-hot{hot}" for hot in THRESHOLDS} <= set(plan.modes)
    assert {f"{OURS}-lru", f"{OURS}-A", f"{OURS}-back"} <= set(plan.modes)
    assert sum(workload.query == "ysb" for workload in plan.workloads) == 1, "it reads no state"
    assert {level for group in plan.groups for level in group.levels} == {"high", "low"}


def test_a_name_that_there_is_not_is_answered_with_those_there_are() -> None:
    for options in ({"queries": ("q5",)}, {"modes": ("fifo",)}, {"reads": ("warm",)}):
        with pytest.raises(BadCall, match="it has"):
            plan_of(**options)  # type: ignore[arg-type]


def test_every_mode_is_found_by_its_name_in_any_case() -> None:
    for name in MODES:
        for spelled in (name, name.upper(), name.lower()):
            (group,) = plan_of(quick=True, queries=("q18",), modes=(spelled,)).groups
            assert group.modes == (name,)


def test_rates_are_shares_of_what_others_work_off() -> None:
    per_s = {"lru": 1_000.0, "asyncio-lru": 4_000.0, OURS: 9_000.0}
    assert rate_of("high", per_s) == 2_800
    assert rate_of("low", per_s) == 700


def test_asyncio_is_asked_for_by_its_name_in_figures() -> None:
    (group,) = plan_of(quick=True, queries=("q18",), modes=("asyncio", OURS)).groups
    assert group.modes == ("asyncio-lru", OURS)
    assert group.shown == ("asyncio", OURS)
    (group, *_) = plan_of(modes=("asyncio",)).groups
    assert group.modes == ("asyncio-lru", "asyncio-clock")


def test_asyncio_has_the_better_of_the_two_caches() -> None:
    (group, *_) = plan_of(modes=("asyncio-lru", "asyncio-clock", OURS)).groups
    per_s = {"asyncio-lru": 1_000.0, "asyncio-clock": 1_200.0}
    assert seat_of("asyncio", group, per_s) == "asyncio-clock"
    assert seat_of(OURS, group, per_s) == OURS


def test_the_rate_is_said_and_is_not_part_of_a_name() -> None:
    cell = Cell(Workload("q18", "direct", 0.9), "low", 1_234)
    assert cell.name == "Q18.direct.hot90.low"
    assert "1,234" in cell.words
