"""What a command line becomes, and what is refused before anything starts."""

from __future__ import annotations

import operator
from functools import partial

import pytest
from click.testing import CliRunner

from penstock.errors import BadCall
from penstock.spark import session
from penstock_lab.cli.bench import bench
from penstock_lab.experiment import needs
from penstock_lab.experiment.plan import plan_of
from penstock_lab.experiment.query_sets import (
    QUERY_SETS,
    Window,
    key_of,
    query_set_of,
    window_of,
)
from penstock_lab.experiment.systems import (
    CHANGELOG_KEY,
    FORMAT_KEY,
    LOCAL_FILES_KEY,
    MODE_KEY,
    SAME_STORE,
    SPARKS_BATCH,
    SYSTEMS,
)
from penstock_lab.queries import named
from penstock_lab.suites.compared import require, skipped


def test_a_quick_nexmark_run_has_the_queries_and_systems_it_names() -> None:
    plan = plan_of(QUERY_SETS["nexmark"], quick=True)
    assert plan.queries == ("q1", "q3", "q4", "q5", "q8", "q18")
    assert plan.systems == ("default", "tuned", "penstock")
    assert plan.repeats == 3


def test_a_full_run_has_every_query_and_the_file_systems_too() -> None:
    plan = plan_of(QUERY_SETS["nexmark"])
    assert len(plan.queries) == 12
    assert plan.systems == ("default", "tuned", "penstock", "default-files", "tuned-files")
    assert plan.repeats >= 5


def test_repeats_are_as_many_as_asked_for() -> None:
    assert plan_of(QUERY_SETS["nexmark"], quick=True, repeats=1).repeats == 1


def test_queries_are_found_in_any_case_and_named_once() -> None:
    assert plan_of(QUERY_SETS["nexmark"], queries=("Q18", "q18", "Q1")).queries == ("q18", "q1")
    assert key_of("q18") == "Q18"
    assert key_of("lr_join_30_5") == "lr_join_30_5"
    assert query_set_of("LR_JOIN_30_5").name == "linearroad"


def test_the_systems_differ_in_what_they_say_and_in_nothing_else() -> None:
    default, tuned, ours = (SYSTEMS[name].conf for name in ("default", "tuned", "penstock"))
    provider = "spark.sql.streaming.stateStore.providerClass"
    assert set(default) == {provider, MODE_KEY, LOCAL_FILES_KEY, *SPARKS_BATCH}
    assert default.items() < tuned.items()
    # Ours takes its provider and its mode from the plug-in's own defaults.
    assert set(tuned) - set(default) > set(ours)


def test_tuned_and_ours_write_the_same_files_of_state_and_count_no_rows() -> None:
    for name in ("tuned", "tuned-files"):
        assert {CHANGELOG_KEY: "true", **SAME_STORE}.items() <= SYSTEMS[name].conf.items()
    ours = SYSTEMS["penstock"].conf
    # What a session of ours adds where nothing is set.
    ours = {**ours, **session._state_store_settings(ours)}
    assert {CHANGELOG_KEY: "true", **SAME_STORE}.items() <= ours.items()
    assert FORMAT_KEY not in SYSTEMS["default"].conf, "Spark as it comes"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nexmark", "--query", "q99"], "nexmark has no query q99; it has q1, q2"),
        (["nexmark", "--system", "flink"], "there is no system 'flink'; there is default, tuned"),
        (["cluster", "--store", "moon"], "there is no store 'moon'; there is local, remote20"),
        (["sustain", "--query", "q99"], "there is no query 'q99'; there is q1"),
    ],
)
def test_a_wrong_name_is_answered_with_those_there_are(arguments: list[str], said: str) -> None:
    with pytest.raises(BadCall, match=said):
        CliRunner().invoke(bench, arguments, standalone_mode=False, catch_exceptions=False)


def test_a_rate_of_nothing_is_refused() -> None:
    said = CliRunner().invoke(bench, ["nexmark", "--rate", "0"])
    assert said.exit_code == 2
    assert "--rate" in said.output


def test_updating_queries_are_not_run_on_files_and_it_is_said_why() -> None:
    plan = plan_of(QUERY_SETS["nexmark"], queries=("q1", "q18"), chosen=("tuned", "tuned-files"))
    assert skipped(plan) == [
        ("tuned-files", "q18", "q18 updates rows, and Spark's file sink only appends")
    ]


@pytest.mark.parametrize(
    ("query", "window"),
    [
        ("q1", None),
        ("q18", None),
        ("q5", Window("ends_at", 4_000)),
        ("q8", Window("starts_at", 14_000)),
        ("lr_join_30_5", None),
        ("lr_count_20_5", Window("starts_at", 21_000)),
        ("cm_category_60_10", Window("starts_at", 61_000)),
        ("ysb", None),
    ],
)
def test_when_a_window_can_close_is_known_of_every_query_that_waits_for_it(
    query: str, window: Window | None
) -> None:
    assert window_of(named(query)) == window


@pytest.mark.parametrize("name", [name for each in QUERY_SETS.values() for name in each.queries])
def test_every_query_of_every_suite_is_fed_by_its_generator(name: str) -> None:
    from penstock_lab.workloads.load import WORKLOADS

    query_set = query_set_of(name)
    query = named(name)
    assert set(query.inputs) <= set(WORKLOADS[query_set.workload].schemas)
    window_of(query)


def test_a_missing_package_is_said_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for missing, said in (
        ("duckdb", r"duckdb is not installed.*pip install 'duckdb'"),
        ("pandas", r"pandas.*pip install 'penstock-lab'"),
    ):
        with pytest.raises(BadCall, match=said):
            needs.require_queries(("q4",), has=partial(operator.ne, missing))
    with pytest.raises(BadCall, match=r"matplotlib.*pip install 'penstock-lab'"):
        needs.require_plot(has=lambda name: name != "matplotlib")
    monkeypatch.setattr(needs.require_campaigns, "__defaults__", (lambda name: name != "redis",))
    with pytest.raises(BadCall, match="Redis"):
        require(plan_of(QUERY_SETS["ysb"], quick=True))


def test_a_redis_that_is_not_there_is_said_in_a_sentence() -> None:
    with pytest.raises(BadCall, match=r"no Redis answers at 127.0.0.1:1 .*redis-server"):
        needs.require_redis("redis://127.0.0.1:1/0")


def test_a_port_in_use_is_said_in_a_sentence() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadCall, match=f"port {port} on 127.0.0.1 cannot be had"):
            needs.require_port(port=port)
