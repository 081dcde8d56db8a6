"""What Spark was told before is kept, and what cannot work is refused before Spark starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import BadCall
from penstock.spark.spark_conf import appended, defaults, local_cores, refuse_connect


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ({"spark.remote": "sc://host"}, {}),
        ({"spark.api.mode": "connect"}, {}),
        ({}, {"SPARK_REMOTE": "sc://host"}),
        ({}, {"SPARK_API_MODE": "connect"}),
        ({}, {"SPARK_CONNECT_MODE": "1"}),
        ({}, {"SPARK_CONNECT_MODE_ENABLED": "1"}),
    ],
)
def test_spark_connect_is_refused_in_a_sentence(
    options: dict[str, str], environ: dict[str, str]
) -> None:
    with pytest.raises(BadCall, match=r"needs classic Spark in this process, and .*; remove"):
        refuse_connect(options, environ)


def test_classic_spark_is_not_refused() -> None:
    refuse_connect({}, {})
    refuse_connect({"spark.api.mode": "classic"}, {"SPARK_CONNECT_MODE": "1"})


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[4]", 4),
        ("local[*]", 8),
        ("local[3, 2]", 3),
        ("local-cluster[2,1,1024]", None),
        ("spark://host:7077", None),
        (None, None),
    ],
)
def test_only_a_local_master_tells_its_cores(master: str | None, cores: int | None) -> None:
    assert local_cores(master, cores_here=8) == cores


def test_a_jar_is_appended_once_and_nothing_is_replaced() -> None:
    assert appended(None, "p.jar") == "p.jar"
    assert appended("a.jar, b.jar", "p.jar") == "a.jar,b.jar,p.jar"
    assert appended("a.jar,p.jar", "p.jar") == "a.jar,p.jar"


def test_spark_defaults_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\nspark.jars   a.jar,b.jar\nspark.master=local[3]\n\nspark.x: y z \n"
    )
    assert defaults({"SPARK_CONF_DIR": str(tmp_path)}) == {
        "spark.jars": "a.jar,b.jar",
        "spark.master": "local[3]",
        "spark.x": "y z",
    }
    assert defaults({"SPARK_CONF_DIR": str(tmp_path / "nowhere")}) == {}
