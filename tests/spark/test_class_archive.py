"""A driver of ours that starts with the archive of Spark's classes, on a real JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.class_archive import FOLDER_VARIABLE, archive_path
from support.spark.class_archive import DRIVERS, FOLDER

LOADED = "-Xlog:class+load:file="
JOB = """
import sys, penstock
spark = penstock.session("local[1]", data=sys.argv[1], conf={"spark.ui.enabled": "false"})
assert spark.range(10).count() == 10
spark.stop()
"""
SHARED_MIN = 5_000
"""Classes of Spark and Scala that a session loads, and more."""


def test_a_session_has_its_classes_from_the_archive(tmp_path: Path) -> None:
    if not archive_path(FOLDER).exists():
        pytest.skip("skipped, because there is no archive of classes: make archive makes it")
    loaded = tmp_path / "loaded.txt"
    environ = {**os.environ, FOLDER_VARIABLE: str(FOLDER), DRIVERS: f"{LOADED}{loaded}"}
    subprocess.run(
        [sys.executable, "-c", JOB, str(tmp_path / "log")], env=environ, check=True, timeout=300
    )
    lines = loaded.read_text().splitlines()
    shared = [line for line in lines if "source: shared objects file (top)" in line]
    assert len(shared) > SHARED_MIN
    assert any("org.apache.spark.sql.classic.SparkSession " in line for line in shared)
