"""Every JVM that tests start has an archive of Spark's classes, where `make archive` has made one.

It gives nothing but time: Java leaves out an archive that does not fit, and tests run without one.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from penstock.spark.class_archive import QUIETLY, archive_path
from penstock.spark.installed import has_pyspark
from support.servers.processes import SHORT_RUN
from support.sources import ROOT

FOLDER = ROOT / "build" / "classes"
# Spark hands these to what it starts.
DRIVERS = "SPARK_SUBMIT_OPTS"
DAEMONS = "SPARK_DAEMON_JAVA_OPTS"


def options() -> str:
    """Options of a JVM for short runs, with the archive if there is one."""
    archive = archive_path(FOLDER)
    if not archive.exists():
        return SHORT_RUN
    return f"{SHORT_RUN} -XX:SharedArchiveFile={archive} {QUIETLY}"


def use(environment: MutableMapping[str, str]) -> None:
    """Let every driver, master and worker that is started with this environment start quickly."""
    if not has_pyspark():
        return  # Tests of what needs no Spark run without it.
    added = options()
    for name in (DRIVERS, DAEMONS):
        before = environment.get(name, "")
        # The workers of a run have it from the process that starts them.
        if added not in before:
            environment[name] = f"{before} {added}".strip()
