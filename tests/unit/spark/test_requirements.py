"""Switches that a job's settings leave unmade, as `penstock doctor` names them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import penstock
from penstock.settings.switches import COLLECTOR_KEY, HEAP_KEY, SWITCHES
from penstock.spark.requirements import check_switches

EXPLAIN = "spark.sql.ui.explainMode"
BY_NAME = {switch.name: switch for switch in SWITCHES}


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Where spark-defaults.conf is looked for, and no option for Java."""
    return {"SPARK_CONF_DIR": str(tmp_path)}


def named(environ: Mapping[str, str], **job_conf: str) -> set[str]:
    """The switches that are said to be left out, each with its effect."""
    sentence = check_switches(
        {name.replace("_", "."): value for name, value in job_conf.items()}, environ
    )
    left_out = {
        name for name in BY_NAME if f"{name} could be {BY_NAME[name].value}, but" in sentence
    }
    assert all(BY_NAME[name].effect in sentence for name in left_out)
    assert sentence.startswith("the settings keep batches longer: ") == bool(left_out)
    return left_out


def test_settings_that_say_nothing_leave_all_of_them_to_us(environ: dict[str, str]) -> None:
    assert named(environ) == set()


def test_one_that_is_set_otherwise_is_named_with_its_effect(
    environ: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"{EXPLAIN} formatted\n{HEAP_KEY} 3g\n")
    assert named(environ) == {EXPLAIN}
    # What the job itself sets comes first.
    assert named(environ, spark_sql_ui_explainMode="simple") == set()
    assert named(environ, spark_driver_memory="8g") == {EXPLAIN, HEAP_KEY}


def test_a_job_without_switches_leaves_out_all_that_apply_to_it(environ: dict[str, str]) -> None:
    off = {"spark_penstock_batch_switches": "false"}
    assert named(environ, **off) == set(BY_NAME)
    anywhere = {name for name, switch in BY_NAME.items() if switch.scope == "anywhere"}
    assert named(environ, **off, spark_master="spark://host:7077") == anywhere
    synchronous = {name for name in anywhere if not BY_NAME[name].needs_our_commit}
    sync = {"spark_penstock_commit_mode": "sync", "spark_master": "yarn"}
    assert named(environ, **off, **sync) == synchronous


def test_options_for_java_that_name_heap_or_collector_are_left_alone(
    environ: dict[str, str],
) -> None:
    options = {**environ, "JAVA_TOOL_OPTIONS": "-Xmx2g -XX:+UseG1GC"}
    assert named(options) == {HEAP_KEY, COLLECTOR_KEY}


def test_the_doctor_takes_the_settings_of_a_job(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(penstock, ["doctor", "--conf", f"{EXPLAIN}=formatted"])
    assert f"{EXPLAIN} could be simple, but it is formatted" in said.output
    said = CliRunner().invoke(penstock, ["doctor", "--conf", EXPLAIN])
    assert said.exit_code == 2
    assert "is not NAME=VALUE" in said.output
