"""Where the JVM is older than our code: spark-submit, and a session that is already running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.jar import find_jar

ATTACH = """
from pyspark.sql import SparkSession
import penstock
try:
    builder = penstock.attach(SparkSession.builder.config("spark.ui.enabled", "false"))
    spark = builder.getOrCreate()
    print("VERSION", penstock.verify(spark))
    spark.stop()
except penstock.BadCall as error:
    print("REFUSED", error)
"""

LATE = """
from pyspark.sql import SparkSession
import penstock
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    penstock.attach(SparkSession.builder)
except penstock.BadCall as error:
    print("REFUSED", error)
query = spark.readStream.format("rate").load().writeStream.format("noop").start()
try:
    penstock.commit_steps(query)
except penstock.BadCall as error:
    print("NO STEPS", error)
spark.stop()
"""


def submit(script: Path, *options: str) -> str:
    import pyspark

    launcher = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    return run([str(launcher), "--master", "local[1]", *options, str(script)], script.parent)


def run(command: list[str], folder: Path) -> str:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_", "PYSPARK_"))}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**kept, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def job(tmp_path: Path) -> Path:
    script = tmp_path / "job.py"
    script.write_text(ATTACH)
    return script


def test_spark_submit_without_the_jar_is_told_the_line_that_works(job: Path) -> None:
    jar = str(find_jar().path)
    assert f"start it with: spark-submit --jars {jar} {job}" in submit(job)
    assert "VERSION " in submit(job, "--jars", jar)


def test_a_session_that_is_already_running_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    script.write_text(LATE)
    said = run([sys.executable, str(script)], tmp_path)
    assert "REFUSED the running JVM was started without the plug-in; call penstock" in said
    assert "NO STEPS the running JVM was started without the plug-in; call penstock" in said
