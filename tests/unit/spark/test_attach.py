"""What `attach` puts on a builder, and what it refuses. No JVM is started here."""

from __future__ import annotations

import os
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.errors import BadCall
from penstock.settings import plugin
from penstock.settings.switches import COLLECTOR_KEY, HEAP_KEY, switches_for
from penstock.spark import jar
from penstock.spark import jvm as gateway
from penstock.spark.session import FILE_MANAGER, FILE_MANAGER_KEY, TOKEN_FOR_JVM


def make_jar(path: Path, version: str | None = None, spark: str = "4.3") -> Path:
    with zipfile.ZipFile(path, "w") as made:
        named_version = version or metadata.version("penstock")
        made.writestr("penstock-version.properties", f"version={named_version}\nspark={spark}\n")
        made.writestr("penstock/Version.class", "")
        made.writestr("penstock/Version$.class", "")
    return path


@pytest.fixture(autouse=True)
def plug_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_CA", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(TOKEN_FOR_JVM, "")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", "python-of-the-test")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(gateway, "is_running", lambda: False)
    made = make_jar(tmp_path / "plug-in.jar")
    monkeypatch.setenv("PENSTOCK_JAR", str(made))
    return made


def builder(**options: str) -> SparkSession.Builder:
    fresh: SparkSession.Builder = SparkSession.builder
    for key, value in options.items():
        fresh.config(key.replace("_", "."), value)
    return fresh


def test_attach_appends_to_the_jars_and_sets_what_the_plug_in_needs(plug_in: Path) -> None:
    options = penstock.attach(
        builder(spark_jars="mine.jar", spark_master="local[3]"), url="http://host:1", token="t"
    )._options
    assert options["spark.jars"] == f"mine.jar,{plug_in}"
    assert options[FILE_MANAGER_KEY] == FILE_MANAGER
    assert options["spark.penstock.url"] == "http://host:1"
    # Options of a builder are on the command line of the JVM, which all users can read.
    assert "spark.penstock.token" not in options
    assert os.environ[TOKEN_FOR_JVM] == "t"
    assert options["spark.sql.shuffle.partitions"] == "3"
    assert options["spark.ui.showConsoleProgress"] == "false"
    assert "spark.penstock.tls.ca" not in options


def test_attach_keeps_the_jars_of_spark_defaults(plug_in: Path, tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.jars theirs.jar\n")
    assert penstock.attach(builder())._options["spark.jars"] == f"theirs.jar,{plug_in}"


def test_attach_leaves_the_user_s_own_settings_alone() -> None:
    own = {"spark.sql.shuffle.partitions": "7", "spark.ui.showConsoleProgress": "true"}
    mine = builder(spark_master="local[2]")
    for key, value in own.items():
        mine.config(key, value)
    assert own.items() <= penstock.attach(mine)._options.items()


def test_attach_twice_is_attach_once(plug_in: Path) -> None:
    once = penstock.attach(builder())
    before = dict(once._options)
    assert penstock.attach(once)._options == before


def test_without_a_server_only_the_plug_in_is_added() -> None:
    assert "spark.penstock.url" not in penstock.attach(builder())._options


def test_a_folder_without_a_running_server_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BadCall, match=r"penstock serve --data .*nothing-here"):
        penstock.attach(builder(), data=tmp_path / "nothing-here")


def test_the_environment_names_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "https://env:1")
    monkeypatch.setenv("PENSTOCK_TOKEN", "env")
    monkeypatch.setenv("PENSTOCK_CA", "ca.pem")
    options = penstock.attach(builder())._options
    assert options["spark.penstock.url"] == "https://env:1"
    assert os.environ[TOKEN_FOR_JVM] == "env"
    assert options["spark.penstock.tls.ca"] == "ca.pem"


def test_the_user_s_file_manager_stands_behind_ours() -> None:
    behind = plugin.CHECKPOINT_FILE_MANAGER.name
    assert behind not in penstock.attach(builder())._options
    mine = penstock.attach(builder().config(FILE_MANAGER_KEY, "org.example.Other"))
    for _ in range(2):
        assert mine._options[FILE_MANAGER_KEY] == FILE_MANAGER
        assert mine._options[behind] == "org.example.Other"
        penstock.attach(mine)


def test_spark_connect_is_refused_before_anything_starts() -> None:
    with pytest.raises(BadCall, match="classic Spark"):
        penstock.attach(builder(spark_remote="sc://host"))
    with pytest.raises(BadCall, match="classic Spark"):
        penstock.session(conf={"spark.api.mode": "connect"})


def test_a_running_jvm_without_the_plug_in_gets_the_exact_line(
    monkeypatch: pytest.MonkeyPatch, plug_in: Path
) -> None:
    monkeypatch.setattr(gateway, "is_running", lambda: True)
    monkeypatch.setattr(gateway, "loaded_version", lambda: None)
    with pytest.raises(BadCall, match=f"pyspark --jars {plug_in}"):
        penstock.attach(builder())
    monkeypatch.setattr(gateway, "is_submitted", lambda: True)
    monkeypatch.setattr("sys.argv", ["job.py"])
    with pytest.raises(BadCall, match=f"spark-submit --jars {plug_in} job.py"):
        penstock.attach(builder())


def test_steps_of_a_commit_are_asked_for_where_spark_runs() -> None:
    with pytest.raises(BadCall, match="no Spark runs in this process"):
        penstock.commit_steps(None)  # type: ignore[arg-type]


def test_a_running_jvm_with_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "is_running", lambda: True)
    monkeypatch.setattr(gateway, "loaded_version", lambda: "9.9.9")
    with pytest.raises(BadCall, match=r"runs version 9\.9\.9"):
        penstock.attach(builder())


def test_jars_in_the_submit_arguments_would_hide_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--jars a.jar pyspark-shell")
    with pytest.raises(BadCall, match=r"add .*jar to that list"):
        penstock.attach(builder())


def test_the_jar_named_by_the_environment_must_be_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for other in (make_jar(tmp_path / "a.jar", "9.9.9"), make_jar(tmp_path / "b.jar", spark="4.2")):
        monkeypatch.setenv("PENSTOCK_JAR", str(other))
        with pytest.raises(BadCall, match="use the jar of this version"):
            jar.find_jar()
    (tmp_path / "c.jar").write_bytes(b"no zip")
    monkeypatch.setenv("PENSTOCK_JAR", str(tmp_path / "c.jar"))
    with pytest.raises(BadCall, match="not the plug-in's jar"):
        jar.find_jar()


def test_no_jar_is_an_error_that_lists_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "jars"
    folder.mkdir()
    with pytest.raises(BadCall, match="has no jars; in a checkout run 'make jar'"):
        jar.find_jar({}, folder)
    make_jar(folder / "penstock-spark4.2_2.13-0.0.1.jar")
    with pytest.raises(BadCall, match=r"which has penstock-spark4\.2_2\.13-0\.0\.1\.jar"):
        jar.find_jar({}, folder)


def test_a_jar_lists_its_top_level_classes(plug_in: Path) -> None:
    assert jar.inspect(plug_in).classes() == ["penstock.Version"]


def test_settings_that_shorten_a_batch_are_made_unless_the_user_has_made_them() -> None:
    mine = builder(spark_master="local[2]", spark_sql_ui_explainMode="cost")
    mine.config("spark.buffer.pageSize", "16m")
    options = penstock.attach(mine)._options
    assert options["spark.sql.ui.explainMode"] == "cost"
    assert options["spark.buffer.pageSize"] == "16m"
    assert options["spark.broadcast.compress"] == "false"
    # The JVM of a builder is the user's: only `session` starts one.
    assert "spark.driver.memory" not in options
    assert "spark.driver.extraJavaOptions" not in options


def test_a_cluster_keeps_its_compression_and_a_commit_of_spark_s_own_its_check() -> None:
    options = penstock.attach(
        builder(spark_master="spark://host:7077", spark_penstock_commit_mode="sync")
    )._options
    assert "spark.broadcast.compress" not in options
    assert "spark.sql.streaming.stateStore.commitValidation.enabled" not in options
    assert options["spark.sql.ui.explainMode"] == "simple"


def test_one_setting_leaves_all_of_them_to_spark() -> None:
    mine = builder(spark_master="local[2]", spark_penstock_batch_switches="false")
    assert "spark.sql.ui.explainMode" not in penstock.attach(mine)._options


@pytest.mark.parametrize(
    ("environ", "user_conf", "left_out"),
    [
        ({}, {}, set()),
        ({"JAVA_TOOL_OPTIONS": "-Dx=1 -XX:+UseG1GC"}, {}, {COLLECTOR_KEY}),
        ({"JDK_JAVA_OPTIONS": "-XX:MaxMetaspaceSize=200m"}, {}, {COLLECTOR_KEY}),
        ({"JDK_JAVA_OPTIONS": "-XX:InitialRAMPercentage=50"}, {}, {COLLECTOR_KEY}),
        ({"_JAVA_OPTIONS": "-Xmx2g"}, {}, {HEAP_KEY}),
        ({"SPARK_DRIVER_MEMORY": "2g"}, {}, {HEAP_KEY}),
        ({}, {"spark.driver.defaultJavaOptions": "-XX:+UseZGC"}, {COLLECTOR_KEY}),
        ({}, {COLLECTOR_KEY: "-Dx=1"}, {COLLECTOR_KEY}),
    ],
)
def test_a_heap_and_a_collector_are_chosen_unless_somebody_has_done_so(
    environ: dict[str, str], user_conf: dict[str, str], left_out: set[str]
) -> None:
    made = switches_for(
        user_conf, is_local=True, starts_jvm=True, has_our_commit=True, environ=environ
    )
    assert {HEAP_KEY, COLLECTOR_KEY} - set(made) == left_out
