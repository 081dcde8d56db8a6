"""Compared systems differ in what is named and in nothing else."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark.sql import SparkSession

from penstock.settings import plugin
from penstock.settings.switches import COLLECTOR_KEY, HEAP_KEY
from penstock.spark import jvm, session
from penstock_lab.experiment.driver import session_conf
from penstock_lab.experiment.driver_commands import Setup
from penstock_lab.experiment.systems import (
    FORMAT,
    LOCAL_FILES_KEY,
    MODE_KEY,
    NOT_COUNTED,
    PROVIDER_KEY,
    SPARKS_BATCH,
    SYSTEMS,
)
from penstock_lab.suites.commit.ablation import CHAINS, DIFFERENCES, Difference, words_of
from penstock_lab.suites.commit.cells import SYSTEMS as COMPARED
from penstock_lab.suites.commit.runs import conf_of

WITHOUT_CHANGELOG = {"default", "zstream"}
ON_LOG = [each for each in DIFFERENCES if SYSTEMS[each.system].rows == "log"]
"""Those whose sessions are made by us."""
ENVIRONMENT = ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_CA", "PYSPARK_SUBMIT_ARGS")


def conf_in(name: str) -> dict[str, str]:
    """The settings that a system's Spark process is started with."""
    further = conf_of(has_changelog=name not in WITHOUT_CHANGELOG)
    return session_conf(Setup(name, 2, "log", further))


def differing(left: dict[str, str], right: dict[str, str]) -> set[str]:
    return {key for key in {*left, *right} if left.get(key) != right.get(key)}


def named(difference: Difference) -> str:
    return f"{difference.before} and {difference.system}"


@pytest.mark.parametrize("difference", DIFFERENCES, ids=named)
def test_neighbours_differ_in_the_settings_that_are_named(difference: Difference) -> None:
    before, system = conf_in(difference.before), conf_in(difference.system)
    assert differing(before, system) == set(difference.keys)
    left, right = SYSTEMS[difference.before], SYSTEMS[difference.system]
    assert left.rows == right.rows
    assert (left.replicas == right.replicas) == (difference.system != "full-replicated")


@pytest.mark.parametrize("difference", ON_LOG, ids=named)
def test_a_session_adds_the_same_to_neighbours(
    difference: Difference, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-test")
    monkeypatch.setattr(jvm, "is_running", lambda: False)
    monkeypatch.setattr(session, "find_jar", lambda: SimpleNamespace(path="plug-in.jar"))

    def session_of(name: str) -> dict[str, str]:
        builder: SparkSession.Builder = SparkSession.builder.master("local[2]")
        for key, value in conf_in(name).items():
            builder.config(key, value)
        session._attach(builder, {}, is_session=True)
        return {key: str(value) for key, value in builder._options.items()}

    before, system = session_of(difference.before), session_of(difference.system)
    assert differing(before, system) == set(difference.keys)


def test_state_format_row_counts_heap_and_collector_are_the_same_for_all() -> None:
    confs = [conf_in(name) for name in COMPARED]
    for conf in confs:
        assert {**FORMAT, **NOT_COUNTED}.items() <= conf.items()
    for key in (HEAP_KEY, COLLECTOR_KEY, "spark.sql.shuffle.partitions"):
        assert len({conf.get(key) for conf in confs}) == 1


def test_spark_s_own_commit_has_spark_s_own_files_and_provider() -> None:
    for name in ("default", "zstream", "tuned"):
        conf = SYSTEMS[name].conf
        assert conf[MODE_KEY] == "sync"
        assert conf[LOCAL_FILES_KEY] == "spark"
        assert conf[PROVIDER_KEY].endswith(".RocksDBStateStoreProvider")
    assert SYSTEMS["tuned+files"].conf[LOCAL_FILES_KEY] == "direct"
    for name in ("tuned+files", "plug-in-sync"):
        conf = SYSTEMS[name].conf
        assert (conf[MODE_KEY], conf[LOCAL_FILES_KEY]) == ("sync", "direct")
        assert conf[PROVIDER_KEY].endswith(".RocksDBStateStoreProvider")


def test_batches_are_spark_s_in_everything_that_can_be_left_to_it() -> None:
    ours_by_default = {
        setting.name
        for setting in plugin.SESSION_SETTINGS
        if "spark" in (setting.choices or ()) and setting.default not in ("spark", None)
    }
    assert ours_by_default | {plugin.BATCH_SWITCHES.name} == set(SPARKS_BATCH)


def test_the_chains_are_made_of_neighbours() -> None:
    steps = {(step.before, step.system) for step in DIFFERENCES}
    assert {pair for chain in CHAINS for pair in itertools.pairwise(chain)} <= steps
    assert words_of("tuned", "tuned+files") == "no process for every rename on a local disk"
    assert "; state files copied" in words_of("tuned", "asyncckpt")
    assert words_of("tuned-files", "plug-in").startswith("the jar: no process for every rename")
