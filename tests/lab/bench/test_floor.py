"""What the floor suite makes of its runs, without running them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from penstock.errors import BadCall, Bug, TryAgain
from penstock.settings import plugin
from penstock.settings.plugin import BATCH_SWITCHES
from penstock.settings.switches import SWITCHES, switches_for
from penstock.spark import jvm, session
from penstock.spark.spark_conf import makes_switches
from penstock_lab.cli.bench import bench
from penstock_lab.experiment import worker
from penstock_lab.experiment.phases import Batch
from penstock_lab.experiment.run import Trial
from penstock_lab.experiment.systems import PROVIDER, TUNED
from penstock_lab.experiment.worker import Job, ask
from penstock_lab.measure import ablated_batches, log_floor, micro_batches
from penstock_lab.measure.mechanisms import (
    CHANGED,
    MECHANISMS,
    OF_A_QUERY,
    OFF_BY_DEFAULT,
    query_conf_of,
    session_conf_of,
    sessions_of,
)
from penstock_lab.suites import floor
from penstock_lab.suites.floor.cells import FULL, QUERIES, Size, plan_of
from penstock_lab.suites.floor.figures import figures, phases
from support.bench_records import ablated_run, floor_runs
from support.sources import ROOT

ENVIRONMENT = ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_CA", "PYSPARK_SUBMIT_ARGS")
SET_BY = {
    "hadoopConf": {"spark.penstock.batch.hadoopConf": "spark"},
    "switches": {"spark.penstock.batch.switches": "false"},
    "watermark": {"spark.penstock.batch.watermark": "spark"},
    "eviction": {"spark.penstock.eviction": "spark"},
    "panes": {"spark.penstock.windows": "spark"},
    "inline": {"spark.penstock.inline.bytes": "0"},
    "commit": {
        "spark.penstock.commit.mode": "sync",
        "spark.penstock.checkpoint.localFiles": "direct",
    },
    "localFiles": {"spark.penstock.checkpoint.localFiles": "spark"},
    "earlyAnswers": {"spark.penstock.commit.earlyAnswers": "true"},
}
"""Of each mechanism, the settings of the plug-in that a run without it, or with it, has."""


def test_what_is_added_is_compared_within_each_repeat() -> None:
    # The machine was twice as slow in the last repeat, for both:
    #   spark      100  110  400
    #   penstock   130  150  460     added: 30  40  60
    by_name = {
        figure.name: figure
        for figure in figures(FULL, floor_runs([100, 110, 400], [130, 150, 460]))
    }
    assert by_name["headline.over_spark_ms"].value == 40
    assert list(by_name["headline.over_spark_ms"].repeats) == [30, 40, 60]
    assert by_name["spark_ms_p50"].value == 110
    assert by_name["penstock_ms_p50"].value == 150
    assert by_name["evict.batch_ratio"].value == 5
    assert by_name["append_ms_p50"].value == 3.0
    assert by_name["fetch_mb_per_s"].value == 301.0


def test_a_suite_cut_short_has_the_figures_it_came_to() -> None:
    records = floor_runs([100, 110], [130, 150])[:7]
    named = {figure.name: figure for figure in figures(FULL, records)}
    assert list(named["penstock_ms_p50"].repeats) == [130, 150]
    assert list(named["headline.over_spark_ms"].repeats) == [30]
    assert figures(FULL, []) == []


def test_the_phases_of_both_systems_stand_side_by_side() -> None:
    assert phases(floor_runs([1, 1, 1], [2, 2, 2])) == {
        "walCommit": {"penstock": 40.0, "spark": 40.0}
    }


def test_the_systems_take_turns_and_each_run_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []

    def answer(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
        assert job.path.is_dir()
        asked.append((job.system, job.path.name))
        return {"trigger_ms_p50": 1.0, "append_ms_p50": 1.0, "fetch_mb_per_s": 1.0}

    monkeypatch.setattr(worker, "ask", answer)
    steps_told: list[str] = []
    size = Size(repeats=2)
    Trial(floor.SUITE, size, tmp_path, steps_told.append).execute()
    assert [system for system, _ in asked] == [
        "fill",
        *("spark", "spark+switches", "penstock", "evict", "append", "fetch"),
        *("spark+switches", "penstock", "spark", "evict", "append", "fetch"),
    ]
    assert len({folder for system, folder in asked if system in ("spark", "penstock")}) == 4
    assert len(steps_told) == size.steps
    assert list(tmp_path.iterdir()) == []


def test_runs_without_a_mechanism_take_turns_and_share_a_process_where_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def answer(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
        asked.append((job.options["query"], *job.options["variants"]))
        return {"variants": {}}

    monkeypatch.setattr(worker, "ask", answer)
    without = ("panes", "switches", "inline")
    size = plan_of(queries=("lr_join",), without=without, repeats=2)
    steps_told: list[str] = []
    Trial(floor.SUITE, size, tmp_path, steps_told.append).execute()
    assert asked == [
        ("lr_join", "penstock", "panes", "inline"),
        ("lr_join", "switches"),
        ("lr_join", "switches"),
        ("lr_join", "panes", "inline", "penstock"),
    ]
    assert len(steps_told) == size.steps == 4


def test_repeats_are_as_many_as_asked_for_or_those_of_the_size() -> None:
    assert plan_of(quick=True).repeats == 3
    assert plan_of().repeats == 5
    assert plan_of(quick=True, repeats=1).repeats == 1


def test_the_page_s_command_has_every_query_and_each_mechanism_in_one_repeat() -> None:
    page = (ROOT / "docs" / "bench" / "floor.md").read_text(encoding="utf-8").replace("\\\n", "")
    (line,) = [line for line in page.splitlines() if "bench floor" in line and "ledgers" in line]
    words = line.split()
    asked = [(word, words[place + 1]) for place, word in enumerate(words[:-1])]
    assert {name for flag, name in asked if flag == "--query"} == set(QUERIES)
    assert {name for flag, name in asked if flag == "--without"} == set(MECHANISMS)
    assert {name for flag, name in asked if flag == "--with"} == set(OFF_BY_DEFAULT)
    assert ("--repeats", "1") in asked


def test_each_switch_is_left_out_alone_and_in_a_process_of_its_own_where_spark_needs_one() -> None:
    size = plan_of(queries=("lr_join",), without=("spark.sql.ui.explainMode", "each-switch"))
    assert size.without[0] == "spark.sql.ui.explainMode"
    assert set(size.without) == {switch.name for switch in SWITCHES}
    assert len(size.without) == len(SWITCHES)
    shared, *apart = size.sessions
    assert shared == (
        "penstock",
        "spark.sql.ui.explainMode",
        "spark.sql.streaming.join.stateFormatVersion",
        "spark.sql.streaming.stateStore.commitValidation.enabled",
    )
    assert set(apart) == {(name,) for name in size.without if name not in shared}


@pytest.mark.parametrize(
    "name", [switch.name for switch in SWITCHES if switch.name not in OF_A_QUERY]
)
def test_a_session_without_one_switch_makes_every_other(name: str) -> None:
    conf = {**micro_batches.CONF, **session_conf_of(name)}
    made = {"is_local": True, "starts_jvm": True, "has_our_commit": True}
    whole = micro_batches.CONF | switches_for(micro_batches.CONF, **made, environ={})
    is_made = makes_switches(conf)
    less = conf | (switches_for(conf, **made, environ={}) if is_made else {})
    less.pop(BATCH_SWITCHES.name, None)
    assert {key for key in whole | less if whole.get(key) != less.get(key)} == {name}


def test_without_commits_behind_the_query_the_files_are_still_ours() -> None:
    """Else what is said to be given by the commit is in part given by its files."""
    assert query_conf_of("commit") == {
        "spark.penstock.commit.mode": "sync",
        "spark.penstock.checkpoint.localFiles": "direct",
    }
    assert query_conf_of("localFiles") == {"spark.penstock.checkpoint.localFiles": "spark"}


def test_state_is_kept_by_all_systems_as_tuned_spark_keeps_it() -> None:
    assert TUNED.items() <= {**micro_batches.CONF, **PROVIDER}.items()


def composed(variant: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Settings that the query of such a run has in its session, as that is made for its process."""
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(folder))
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-test")
    monkeypatch.setattr(jvm, "is_running", lambda: False)
    monkeypatch.setattr(session, "find_jar", lambda: SimpleNamespace(path="plug-in.jar"))
    # One that a query can differ in shares the process of the run with all at their default.
    changed = (variant,) if variant in CHANGED else ()
    (first, *_) = next(names for names in sessions_of(changed) if variant in names)
    options = ablated_batches.Options("lr_join", (first,), warm_up=1, batches=1)
    builder: SparkSession.Builder = SparkSession.builder.master(micro_batches.MASTER)
    for key, value in ablated_batches.session_conf(options).items():
        builder.config(key, value)
    session._attach(builder, {}, is_session=True)
    made = {key: str(value) for key, value in builder._options.items()}
    return {**made, **query_conf_of(variant)}


@pytest.mark.parametrize("name", [*MECHANISMS, *OFF_BY_DEFAULT])
def test_a_run_that_differs_in_a_mechanism_has_its_settings_and_no_others(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, less = (composed(variant, tmp_path, monkeypatch) for variant in ("penstock", name))
    differing = {key for key in {*whole, *less} if whole.get(key) != less.get(key)}
    changes = SET_BY[name]
    assert {key: less[key] for key in changes} == changes
    defaults = {setting.name: setting.default for setting in plugin.SESSION_SETTINGS}
    assert changes.keys() <= defaults.keys()
    (of_mechanism, *_) = changes
    assert whole.get(of_mechanism, defaults[of_mechanism]) != less[of_mechanism]
    # Heap, collector and sockets of Python workers are those of every system.
    of_session = {switch.name for switch in SWITCHES} & set(whole) - set(micro_batches.CONF)
    assert of_session > OF_A_QUERY
    assert differing == {*changes, *(of_session if name == "switches" else ())}


def test_what_a_mechanism_gives_is_taken_within_each_repeat() -> None:
    # penstock       100  300  110
    # without panes  130  310  150    gives: 30  10  40
    size = plan_of(quick=True, queries=("cm_category",), without=("panes",))
    runs = zip((100.0, 300.0, 110.0), (130.0, 310.0, 150.0), strict=True)
    records = [
        ablated_run("cm_category", repeat, whole_ms, panes=less_ms)
        for repeat, (whole_ms, less_ms) in enumerate(runs)
    ]
    named = {figure.name: figure for figure in figures(size, records)}
    assert named["cm_category.penstock_ms_p50"].value == 110
    assert named["cm_category.without.panes_ms_p50"].value == 150
    assert named["cm_category.gives.panes_ms"].value == 30
    assert named["cm_category.step.planning_ms"].value == 11
    assert named["cm_category.ledger_explained"].value == 0.93
    assert not any(name.startswith("headline.") for name in named)


def test_what_is_off_by_default_is_turned_on_and_gives_what_the_batch_is_shorter_by() -> None:
    size = plan_of(queries=("lr_join",), without=("panes",), with_also=("earlyAnswers",))
    assert size.sessions == [("penstock", "panes", "earlyAnswers")]
    assert query_conf_of("earlyAnswers") == {"spark.penstock.commit.earlyAnswers": "true"}
    assert session_conf_of("earlyAnswers") == {}
    records = [ablated_run("lr_join", 0, 100.0, panes=130.0, earlyAnswers=80.0)]
    named = {figure.name: figure.value for figure in figures(size, records)}
    assert named["lr_join.with.earlyAnswers_ms_p50"] == 80
    assert named["lr_join.gives.earlyAnswers_ms"] == 20
    assert named["lr_join.gives.panes_ms"] == 30
    assert "lr_join.without.earlyAnswers_ms_p50" not in named


def test_an_unknown_name_is_answered_with_those_there_are() -> None:
    with pytest.raises(BadCall, match="no query q5 here; there is floor, cm_category, lr_join"):
        plan_of(queries=("q5",))
    with pytest.raises(BadCall, match="no mechanism 'gravity' to leave out; there is hadoopConf,"):
        plan_of(without=("gravity",))
    with pytest.raises(BadCall, match="no mechanism 'earlyAnswers' to leave out; there is hadoop"):
        plan_of(without=("earlyAnswers",))
    with pytest.raises(BadCall, match="no mechanism 'panes' to turn on; there is earlyAnswers"):
        plan_of(with_also=("panes",))


def test_the_help_of_without_names_every_mechanism() -> None:
    said = " ".join(CliRunner().invoke(bench, ["floor", "--help"]).output.split())
    assert ", ".join(MECHANISMS) in said
    assert f"off by default: {', '.join(OFF_BY_DEFAULT)}." in said


def test_expected_counts_are_those_of_the_numbers_that_were_fed() -> None:
    rows = 7 * micro_batches.ROWS
    counts = np.bincount(np.arange(rows) % micro_batches.KEYS, minlength=micro_batches.KEYS)
    assert (micro_batches.expected_counts(rows) == counts).all()


def test_a_wrong_count_in_the_output_is_refused() -> None:
    rows = 3 * micro_batches.ROWS
    batches = [Batch(n, micro_batches.ROWS, {}) for n in range(3)]
    counts = micro_batches.expected_counts(rows)
    right = pa.table({"key": np.arange(micro_batches.KEYS), "count": counts}).slice(0, rows)
    micro_batches.check_output(right, batches)
    counts[5] += 1
    counts[6] -= 1
    wrong = pa.table({"key": np.arange(micro_batches.KEYS), "count": counts}).slice(0, rows)
    with pytest.raises(Bug, match="wrong counts for 2"):
        micro_batches.check_output(wrong, batches)


def test_the_rows_of_the_log_are_of_the_size_they_claim() -> None:
    table = log_floor.rows(0, 100)
    assert abs(table.nbytes - log_floor.APPEND_BYTES) < 1_000
    assert table["n"].to_pylist() == list(range(100))


def test_a_worker_that_fails_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(TryAgain, match=r"ended with 1; it said: [\s\S]*KeyError: 'nothing'"):
        ask("penstock_lab.measure.log_floor", Job("nothing", str(tmp_path)), 60)


def test_an_unknown_suite_is_answered_with_those_there_are() -> None:
    said = CliRunner().invoke(bench, ["cellar"])
    assert said.exit_code == 2
    assert "there is no suite 'cellar'; there is floor" in said.output


def test_the_median_of_a_step_is_taken_over_the_batches_that_have_it() -> None:
    batches = [{"planning": 9.0, "tasks": 50.0}, {"planning": 3.0}, {"planning": 5.0}]
    assert micro_batches.step_medians(batches) == {"planning": 5.0, "tasks": 50.0}
