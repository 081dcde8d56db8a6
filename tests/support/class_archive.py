"""An archive of Spark's classes as Java keeps them in memory: a JVM with it starts twice as fast.

Run as a script before the tests, `python tests/support/class_archive.py` makes it from a run of the
job of three_queries.py, unless it is there. Tests then tell every Spark driver they start to use
it. It makes nothing but time: Java leaves out an archive that does not fit, and tests run without.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import MutableMapping
from pathlib import Path

import pyspark

from support.processes import SHORT_RUN, ServerProcess, wait_until
from support.sources import ROOT
from support.three_driving import ThreeQueries

FOLDER = ROOT / "build" / "classes"
BATCHES = 2
# Spark hands these to every driver that it starts. Java would print what other variables tell it.
VARIABLE = "SPARK_SUBMIT_OPTS"
QUIETLY = "-Xlog:cds*=off"


def archive() -> Path:
    """Where it is, or would be: another Java, another Spark or other jars have another."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    jars = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    sizes = [f"{jar} {jar.stat().st_mtime_ns} {jar.stat().st_size}" for jar in jars]
    told = " ".join([str(java.resolve()), *sizes])
    return FOLDER / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def use(environment: MutableMapping[str, str]) -> None:
    """Let every driver started with this environment be quick to start, with the archive or not."""
    told = [environment.get(VARIABLE, ""), SHORT_RUN]
    if archive().exists():
        told += [f"-XX:SharedArchiveFile={archive()}", QUIETLY]
    environment[VARIABLE] = " ".join(told).strip()


def make(folder: Path) -> Path:
    """The archive of the classes that a run of three queries has loaded, in `folder`."""
    made = folder / "classes.jsa"
    os.environ[VARIABLE] = f"{SHORT_RUN} -XX:ArchiveClassesAtExit={made} {QUIETLY}"
    server = ServerProcess(folder / "data").start()
    try:
        driver = ThreeQueries(server, folder / "job", BATCHES).finish()
    finally:
        server.stop()
    # Java writes it when it ends, which is after its driver has.
    wait_until("Java has ended", lambda: not driver.has_processes())
    return made


def main() -> None:
    wanted = archive()
    if wanted.exists():
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(FileNotFoundError):
        made = make(Path(folder))
        FOLDER.mkdir(parents=True)
        # Under its name only when it is whole: others may be starting.
        shutil.copy(made, wanted.with_suffix(".new"))
        wanted.with_suffix(".new").rename(wanted)
    print(wanted if wanted.exists() else "this Java keeps no archive of classes; tests take longer")


if __name__ == "__main__":
    main()
