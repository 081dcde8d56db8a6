"""Archives of Spark's classes as Java keeps them in memory: a driver with one is at work sooner.

`penstock archive` makes the archive of this machine's Java, Spark and jars, once; `session` names
it to the JVM that it starts. It gives nothing but time: Java leaves out an archive that does not
fit its class path, and starts without one, too.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import BadCall
from penstock.settings.switches import COLLECTOR_KEY, DEFAULT_OPTIONS_KEY, JAVA_VARIABLES
from penstock.spark.installed import need_pyspark

FOLDER_VARIABLE = "PENSTOCK_CLASS_ARCHIVES"
"""Names the folder of archives; empty: none is used."""
WRITTEN_VARIABLE = "PENSTOCK_CLASS_ARCHIVE_WRITTEN"
"""Has the session write the archive that it names when its JVM ends; of the job alone."""
JOB = "penstock.spark.class_archive_job"
NAMED = re.compile(r"-XX:(SharedArchiveFile|ArchiveClassesAtExit)=|-Xshare:")
# Java would print what it thinks of an archive among the lines of the user's program.
QUIETLY = "-Xlog:cds*=off"
JOB_TIMEOUT_S = 600.0
TAIL_LINES = 5


def archives_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """The folder that archives are kept in; None if none are wanted, or the user has no home."""
    given = environ.get(FOLDER_VARIABLE)
    if given is not None:
        return Path(given) if given else None
    cache = environ.get("XDG_CACHE_HOME")
    try:
        return Path(cache or Path.home() / ".cache") / "penstock" / "classes"
    except RuntimeError:
        return None  # A container may run as a user that nobody has entered.


def archive_path(folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """The archive of this Java with the jars of this Spark: others have another name."""
    home = environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")
    jars = sorted((_spark_home(environ) / "jars").glob("*.jar"))
    sizes = [f"{jar} {jar.stat().st_mtime_ns} {jar.stat().st_size}" for jar in jars]
    identity = " ".join([str(java.resolve()), *sizes])
    return folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def archive_options(
    user_conf: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> str | None:
    """Options for a JVM that is to be started; None without an archive, or if the user has one."""
    java_options = [environ.get(name, "") for name in JAVA_VARIABLES]
    java_options += [user_conf.get(key, "") for key in (COLLECTOR_KEY, DEFAULT_OPTIONS_KEY)]
    if NAMED.search(" ".join(java_options)):
        return None
    written = environ.get(WRITTEN_VARIABLE)
    if written:
        return f"-XX:ArchiveClassesAtExit={written} {QUIETLY}"
    folder = archives_folder(environ)
    try:
        if folder is None or not (archive := archive_path(folder, environ)).exists():
            return None
    except OSError:
        return None  # What gives nothing but time must not keep a session from starting.
    return f"-XX:SharedArchiveFile={archive} {QUIETLY}"


def make_archive(folder: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Run the job in a process of its own, whose JVM writes the archive at its end.

    Takes about a minute. Raises BadCall with the job's last lines if it fails, or if this Java
    keeps no archives.
    """
    need_pyspark()
    archive = archive_path(folder, environ)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadCall(
            f"archives cannot be kept in {folder} ({error}); name another folder",
            code="no_archive",
        ) from error
    with tempfile.TemporaryDirectory(dir=folder) as place:
        written = Path(place) / "classes.jsa"
        job_environ = {**environ, WRITTEN_VARIABLE: str(written), FOLDER_VARIABLE: ""}
        try:
            ended = subprocess.run(
                [sys.executable, "-m", JOB, place],
                env=job_environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=JOB_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BadCall(
                f"the job whose classes are kept did not end within {JOB_TIMEOUT_S:g} s",
                code="no_archive",
            ) from error
        if ended.returncode != 0 or not written.exists():
            last_lines = "\n".join(ended.stdout.splitlines()[-TAIL_LINES:])
            raise BadCall(
                "no archive was written: the job ended with "
                f"{ended.returncode}, and this Java may keep none; its last lines:\n{last_lines}",
                code="no_archive",
            )
        # Under its name only when it is whole: drivers may be starting.
        written.rename(archive)
    return archive


def _spark_home(environ: Mapping[str, str]) -> Path:
    """Where Spark's jars are; found without importing PySpark, which takes longer."""
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent
