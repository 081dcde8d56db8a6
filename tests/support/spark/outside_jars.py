"""A session with jars of other projects in it, and a way to say that they do not fit Spark's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

import penstock

DOES_NOT_RUN = 4
"""The exit status of a job whose jars do not fit; its last line says why."""
MISFITS = ("NoSuchMethodError", "NoClassDefFoundError", "NoSuchFieldError", "AbstractMethodError")


def run_with_jars(
    job: dict[str, Any], conf: dict[str, str], body: Callable[[SparkSession], None]
) -> int:
    """The exit status of a job that calls `body`. A class of ours that is missing is a failure."""
    spark = _session(job, conf)
    try:
        body(spark)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if any(name in line for name in MISFITS)]
        if not lines or "penstock" in lines[0]:
            raise
        print(lines[0].strip())
        return DOES_NOT_RUN
    spark.stop()
    return 0


def _session(job: dict[str, Any], conf: dict[str, str]) -> SparkSession:
    builder: SparkSession.Builder = SparkSession.builder.master("local[2]")
    for key, value in {
        **job["conf"],
        # The name of an error is nowhere but in its trace.
        "spark.sql.pyspark.jvmStacktrace.enabled": "true",
        "spark.jars": ",".join(job["jars"]),
        **conf,
    }.items():
        builder = builder.config(key, value)
    return penstock.attach(builder).getOrCreate()
