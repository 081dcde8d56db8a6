"""An archive of Spark's classes as Java keeps them in memory: a JVM with it starts twice as fast.

`make_class_archive.py` makes it. It gives nothing but time: Java leaves out an archive that does
not fit, and tests run without one, too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
from collections.abc import MutableMapping
from pathlib import Path

from support.servers.processes import SHORT_RUN
from support.sources import ROOT

FOLDER = ROOT / "build" / "classes"
# Spark hands these to what it starts. Java would print what variables of its own tell it.
DRIVERS = "SPARK_SUBMIT_OPTS"
DAEMONS = "SPARK_DAEMON_JAVA_OPTS"
QUIETLY = "-Xlog:cds*=off"


def archive() -> Path:
    """Where it is, or would be: another Java, another Spark or other jars have another."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    # Found without importing it, which takes longer than many a test.
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = sorted((Path(spec.origin).parent / "jars").glob("*.jar"))
    sizes = [f"{jar} {jar.stat().st_mtime_ns} {jar.stat().st_size}" for jar in jars]
    described = " ".join([str(java.resolve()), *sizes])
    return FOLDER / f"{hashlib.sha256(described.encode()).hexdigest()[:16]}.jsa"


def options() -> str:
    """What makes a JVM with Spark's jars quick to start, with the archive if there is one."""
    kept = archive()
    return f"{SHORT_RUN} -XX:SharedArchiveFile={kept} {QUIETLY}" if kept.exists() else SHORT_RUN


def use(environment: MutableMapping[str, str]) -> None:
    """Let every driver, master and worker that is started with this environment start quickly."""
    if importlib.util.find_spec("pyspark") is None:
        return  # Tests of what needs no Spark run without it.
    java_options = options()
    for name in (DRIVERS, DAEMONS):
        before = environment.get(name, "")
        # The workers of a run have it from the process that starts them.
        if java_options not in before:
            environment[name] = f"{before} {java_options}".strip()
