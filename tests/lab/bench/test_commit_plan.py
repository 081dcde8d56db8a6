"""What `penstock bench commit` will do, before anything starts."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from penstock.errors import BadCall
from penstock_lab.cli.bench import bench
from penstock_lab.experiment.driver import session_conf
from penstock_lab.experiment.driver_commands import Setup
from penstock_lab.experiment.plan import STORES, WarmUp
from penstock_lab.experiment.systems import CHANGELOG_KEY, SYSTEMS
from penstock_lab.experiment.turns import rotated
from penstock_lab.suites.commit.cells import (
    FILES,
    ON_FILES,
    PLUG_IN_SYNC,
    QUERIES,
    REPLICATED,
    Cell,
    Group,
    about_s,
)
from penstock_lab.suites.commit.cells import SYSTEMS as COMMIT_SYSTEMS
from penstock_lab.suites.commit.plans import plan_of
from penstock_lab.suites.commit.runs import conf_of


def cells(groups: tuple[Group, ...]) -> set[Cell]:
    return {cell for group in groups for cell in group.cells}


def cells_of(groups: tuple[Group, ...], system: str) -> set[Cell]:
    return {cell for group in groups for cell in group.cells if system in group.systems_at(cell)}


def test_a_cell_is_named_by_query_store_trigger_and_changelog() -> None:
    assert Cell("lr_join_30_1", "local", 0.0, True).name == "lr_join_30_1.local.0s.on"
    assert Cell("lr_join_30_1", "remote20", 3.0, False).name == "lr_join_30_1.remote20.3s.off"
    assert Cell("cm_job_30_1", "local", 3.0, True, 1_500).name == "cm_job_30_1@1500.local.3s.on"


def test_no_two_cells_of_the_full_run_have_one_name() -> None:
    plan = plan_of()
    planned_cells = {cell for group in plan.groups for cell in group.cells}
    assert len({cell.name for cell in planned_cells}) == len(planned_cells)


@pytest.mark.parametrize("quick", [True, False])
def test_no_system_is_run_twice_at_a_cell(quick: bool) -> None:
    plan = plan_of(quick=quick)
    pairs = [
        (system, cell)
        for group in plan.groups
        for cell in group.cells
        for system in group.systems_at(cell)
    ]
    assert len(set(pairs)) == len(pairs)


def test_the_full_run_has_every_query_store_trigger_and_system() -> None:
    plan = plan_of()
    wanted = {
        (query, store, every_s, has_changelog)
        for query in QUERIES
        for store in STORES
        for every_s in (0.0, 3.0)
        for has_changelog in (True, False)
    }
    measured = {
        (cell.query, cell.store, cell.every_s, cell.has_changelog)
        for cell in cells(plan.groups)
        if cell.rate == 2_500
    }
    assert measured == wanted
    assert {cell.query for cell in cells(plan.groups) if cell.rate == 1_500} == set(QUERIES)
    assert plan.systems == (
        *("default", "zstream", "tuned", FILES, "asyncckpt", "full", REPLICATED),
        *ON_FILES,
    )
    assert plan.growth is not None
    assert plan.growth.batches_min == 500
    assert [name for name, _ in plan.growth.each][:2] == ["full", "default"]
    assert plan.left_out == ()


def test_local_file_handling_is_measured_where_the_location_is_local() -> None:
    for plan in (plan_of(), plan_of(quick=True)):
        assert {cell.store for cell in cells_of(plan.groups, FILES)} == {"local"}
        assert {cell.store for cell in cells_of(plan.groups, PLUG_IN_SYNC)} == {"local"}
        local = {cell for cell in cells_of(plan.groups, "full") if cell.store == "local"}
        assert {cell for cell in local if cell.has_changelog} == cells_of(plan.groups, FILES)


def test_a_quick_run_has_every_step_of_the_ablation_at_one_cell() -> None:
    plan = plan_of(quick=True)
    names = [
        {cell.base_name for cell in cells_of(plan.groups, system) if cell.is_back_to_back}
        for system in ("default", "tuned", FILES, "asyncckpt", "full")
    ]
    assert set.intersection(*names) == {"lr_join_30_1.local.0s"}


def test_a_replicated_log_is_compared_at_one_cell_of_a_quick_run() -> None:
    quick, full = plan_of(quick=True), plan_of()
    (cell,) = cells_of(quick.groups, REPLICATED)
    assert cell in cells_of(quick.groups, "tuned")
    assert cell.store == "remote20"
    hurried = {cell for cell in cells_of(full.groups, "full") if cell.is_back_to_back}
    assert cells_of(full.groups, REPLICATED) == {cell for cell in hurried if cell.has_changelog}


def test_the_plug_in_alone_is_compared_at_one_cell_of_a_quick_run() -> None:
    plan = plan_of(quick=True)
    assert {cell.name for cell in cells_of(plan.groups, "plug-in")} == {"lr_join_30_1.local.0s.on"}
    for name in ON_FILES:
        assert cells_of(plan.groups, name) == cells_of(plan.groups, "plug-in")


def test_without_log_servers_the_replicated_log_is_left_out_and_named() -> None:
    plan = plan_of(quick=True, has_log_servers=False)
    assert REPLICATED not in plan.systems
    assert any(REPLICATED in sentence and "nats-server" in sentence for sentence in plan.left_out)
    asked = plan_of(quick=True, chosen=(REPLICATED,), has_log_servers=False)
    assert asked.systems == (REPLICATED,)


def test_a_warm_up_by_batches_takes_as_long_as_they_do_within_its_bounds() -> None:
    hurried, paced = Cell("lr_join_30_1", "local", 0.0, True), Cell("q", "local", 3.0, False)
    warm_up = WarmUp(10.0, 20, 3.0)
    assert about_s(warm_up, hurried) == pytest.approx(7.0)
    assert about_s(warm_up, paced) == 10.0
    assert about_s(WarmUp(10.0, 2, 3.0), hurried) == 3.0
    assert about_s(WarmUp(10.0), hurried) == 10.0


@pytest.mark.parametrize("quick", [True, False])
def test_a_system_whose_batches_take_three_seconds_has_all_batches_of_a_warm_up(
    quick: bool,
) -> None:
    plan = plan_of(quick=quick)
    hurried, paced = Cell("lr_join_30_1", "remote80", 0.0, True), Cell("q", "local", 3.0, False)
    for cell in (hurried, paced):
        for is_first in (True, False):
            warm_up = plan.warm_up_at(cell, is_first=is_first)
            assert 3.0 * warm_up.batches <= warm_up.most_s
    first, later = (plan.warm_up_at(hurried, is_first=is_first) for is_first in (True, False))
    assert first.batches > later.batches
    assert plan.warm_up_at(paced, is_first=True).batches < later.batches


def test_a_quick_run_has_every_store_and_system_on_the_log_and_says_what_it_leaves_out() -> None:
    plan = plan_of(quick=True)
    assert {cell.store for cell in cells(plan.groups)} == set(STORES)
    assert plan.systems == tuple(name for name in COMMIT_SYSTEMS if name != "zstream")
    assert all(cell.is_back_to_back for cell in cells(plan.groups))
    assert plan.repeats >= 3
    assert plan.growth is not None
    assert plan.growth.batches_min == 100
    assert [name for name, _ in plan.growth.each] == ["full"]
    assert plan.sustain is None
    assert any("zstream" in words for words in plan.left_out)
    assert plan.minutes < 20


def test_spark_without_a_changelog_is_compared_without_one_and_tuned_with_one() -> None:
    for plan in (plan_of(), plan_of(quick=True)):
        for group in plan.groups:
            assert {cell.has_changelog for cell in group.cells} == {group.has_changelog}
            assert ("default" in group.systems) == (not group.has_changelog)
            on_files = set(group.systems) <= set(ON_FILES)
            assert ("tuned" in group.systems) == (group.has_changelog and not on_files)


def test_zstream_runs_where_there_is_a_trigger_and_its_policy_cuts_instead_of_it() -> None:
    plan = plan_of()
    group = next(group for group in plan.groups if "zstream" in group.systems)
    paced = next(cell for cell in group.cells if not cell.is_back_to_back)
    hurried = next(cell for cell in group.cells if cell.is_back_to_back)
    assert "zstream" in group.systems_at(paced)
    assert "zstream" not in group.systems_at(hurried)
    conditions = plan.conditions(paced, 10.0, WarmUp(5.0), "zstream")
    assert conditions.every_s == 0.0
    assert conditions.options == {"deadline": "3000ms", "policy": "zstream"}
    assert plan.conditions(paced, 10.0, WarmUp(5.0), "default").every_s == 3.0
    assert plan.conditions(paced, 10.0, WarmUp(5.0), "default").options == {}
    assert SYSTEMS["zstream"].conf == SYSTEMS["default"].conf, "only the cut differs"


@pytest.mark.parametrize("system", ["zstream", "full", "default", FILES, REPLICATED])
def test_cells_where_nothing_was_asked_for_are_not_there(system: str) -> None:
    for quick in (True, False):
        plan = plan_of(quick=quick, chosen=(system,))
        assert plan.systems == (system,)
        assert all(group.systems_at(cell) for group in plan.groups for cell in group.cells)


def test_only_what_was_asked_for_is_run() -> None:
    plan = plan_of(queries=("cm_job_30_1",), stores=("local",), chosen=("tuned",), rate=500)
    assert plan.systems == ("tuned",)
    assert {(cell.query, cell.store, cell.rate) for cell in cells(plan.groups)} == {
        ("cm_job_30_1", "local", 500)
    }
    assert plan.growth is None
    assert plan.sustain is None


@pytest.mark.parametrize(
    "arguments", [["--query", "q1"], ["--store", "tape"], ["--system", "penstock"]]
)
def test_a_name_that_is_not_there_is_answered_with_those_that_are(arguments: list[str]) -> None:
    answer = CliRunner().invoke(bench, ["commit", "--quick", *arguments])
    assert isinstance(answer.exception, BadCall)
    assert arguments[1] in answer.exception.message
    assert "it has" in answer.exception.message


def test_systems_take_turns_in_who_goes_first() -> None:
    names = ("tuned", "full")
    assert [rotated(names, repeat)[0] for repeat in range(3)] == ["tuned", "full", "tuned"]
    assert rotated(names, 1) == ("full", "tuned")


def test_every_process_knows_every_store_and_whether_there_is_a_changelog() -> None:
    conf = session_conf(Setup("full", 2, "log", conf_of(has_changelog=False)))
    assert conf[CHANGELOG_KEY] == "false"
    assert "spark.hadoop.fs.remote20.impl" in conf
    assert "spark.hadoop.fs.remote80.impl" in conf
    assert conf_of(has_changelog=True)[CHANGELOG_KEY] == "true"
