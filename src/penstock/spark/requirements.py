"""Requirements of Penstock on this machine: one check for each.

A check returns a sentence on what it has seen, or raises BadCall with one that ends in the remedy.
None of them starts Spark or changes anything.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from penstock.client import Client
from penstock.client.address import find, read_token
from penstock.errors import BadCall, PenstockError
from penstock.settings.switches import SWITCHES, unmade_switches
from penstock.spark.class_archive import (
    FOLDER_VARIABLE,
    archive_options,
    archive_path,
    archives_folder,
)
from penstock.spark.installed import has_pyspark
from penstock.spark.jar import SPARK_LINE, find_jar, our_version, spark_version
from penstock.spark.spark_conf import defaults, has_our_commit, local_cores, makes_switches

PYTHON_MIN = (3, 11)
JAVA_MIN = 17
NO_SPARK = "not needed for the log alone; for Spark: pip install 'penstock[spark]'"
SERVE = "penstock serve --data penstock-data"
PROBE_DEADLINE_S = 2.0


def check_python() -> str:
    if sys.version_info < PYTHON_MIN:
        raise _fails(f"Python is {platform.python_version()}; use 3.11 or newer")
    return f"{platform.python_version()} ({sys.executable})"


def check_java() -> str:
    if not has_pyspark():
        return "not looked for: only Spark needs it"
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    remedy = f"install a JDK {JAVA_MIN} or newer, or point JAVA_HOME at one"
    if java is None or not Path(java).exists():
        raise _fails(f"there is no java {'at ' + java if java else 'on the path'}; {remedy}")
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)([^"]*)"', version.stderr + version.stdout)
    if match is None or int(match[1]) < JAVA_MIN:
        raise _fails(f"{java} is {match[0] if match else 'of no known version'}; {remedy}")
    return f"{match[1]}{match[2]} ({java})"


def check_pyspark() -> str:
    if not has_pyspark():
        return f"not installed; {NO_SPARK}"
    installed = spark_version()
    if not installed.startswith(f"{SPARK_LINE}."):
        raise _fails(f"pyspark is {installed}; install pyspark {SPARK_LINE}")
    # Spark starts the JVM from SPARK_HOME if that is set, whatever pyspark is imported.
    home = os.environ.get("SPARK_HOME")
    if home is not None and not list(Path(home, "jars").glob(f"spark-core_2.13-{SPARK_LINE}.*")):
        raise _fails(f"SPARK_HOME is {home}, which is not Spark {SPARK_LINE}; unset it")
    return installed


def check_jar() -> str:
    if not has_pyspark():
        return "not looked for: only Spark needs it"
    jar = find_jar()
    classes = jar.classes()
    if "penstock.Version" not in classes:
        raise _fails(f"{jar.path} has no class penstock.Version; build it again with 'make jar'")
    return f"{jar.version} for Spark {jar.spark}, {len(classes)} classes ({jar.path})"


def check_switches(
    job_conf: Mapping[str, str] | None = None, environ: Mapping[str, str] = os.environ
) -> str:
    """Spark settings of a job that keep a batch longer than it need be: those of
    spark-defaults.conf and the job's own, which come first. Never a failure."""
    if not has_pyspark():
        return "not looked at: only Spark has them"
    user_conf = {**defaults(environ), **(job_conf or {})}
    # Who names no master starts penstock.session's own, which is local.
    is_local = local_cores(user_conf.get("spark.master", "local"), 1) is not None
    unmade = unmade_switches(
        user_conf,
        are_made=makes_switches(user_conf),
        is_local=is_local,
        has_our_commit=has_our_commit(user_conf),
        environ=environ,
    )
    if not unmade:
        return (
            "the settings leave them to penstock.session, and to penstock.attach but for heap and "
            "collector of a JVM that runs"
        )
    slower = [
        f"{switch.name} could be {switch.value}, but {unmade[switch.name]}: {switch.doc} "
        f"(effect: {switch.effect})"
        for switch in SWITCHES
        if switch.name in unmade
    ]
    return "the settings keep batches longer: " + "; ".join(slower)


def check_class_archive(environ: Mapping[str, str] = os.environ) -> str:
    """Whether drivers here start with an archive of Spark's classes. Never a failure."""
    if not has_pyspark():
        return "not looked for: only Spark has use for them"
    folder = archives_folder(environ)
    if folder is None:
        return f"no archive of them is used: {FOLDER_VARIABLE} is empty, or there is no home folder"
    archive = archive_path(folder, environ)
    if archive_options({}, environ) is not None:
        return f"drivers that penstock.session starts have them laid out ({archive})"
    return "not laid out; 'penstock archive', once, has drivers at work sooner"


def check_loopback() -> str:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            return f"can listen on 127.0.0.1 (tried port {server.getsockname()[1]})"
    except OSError as error:
        raise _fails(
            f"cannot listen on 127.0.0.1 ({error}); allow loopback sockets for this user"
        ) from error


def check_server(
    url: str | None, token_file: Path | None, ca: str | None, data: Path | None
) -> str:
    token = None if token_file is None else read_token(token_file)
    address = find(url, token, ca, data)
    if address is None:
        return f"none is running here; start one with '{SERVE}', or with penstock.session()"
    with Client(address.url, address.token, address.ca, deadline_s=PROBE_DEADLINE_S) as client:
        try:
            about = client.server()
        except PenstockError as error:
            raise _fails(f"{error.message}; start it with '{SERVE}'") from error
    if about.version != our_version():
        raise _fails(
            f"the server at {address.url} is version {about.version}, and this package is "
            f"{our_version()}; run the same version on both sides"
        )
    return f"version {about.version} answers at {address.url}, data in {about.data}"


def _fails(sentence: str) -> BadCall:
    return BadCall(sentence, code="doctor")
