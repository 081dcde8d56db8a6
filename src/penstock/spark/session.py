"""Starts Spark with the plug-in and a server, or adds both to a builder of yours."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client import address, default
from penstock.client.address import Address
from penstock.client.client import Client
from penstock.errors import BadCall, TryAgain
from penstock.observe.batch_ledger import BatchSteps, ledgers
from penstock.observe.plan_notes import PlanNote, notes_in
from penstock.settings import plugin
from penstock.settings.switches import COLLECTOR_KEY, switches_for
from penstock.spark import server_process
from penstock.spark.class_archive import archive_options
from penstock.spark.installed import need_pyspark
from penstock.spark.jar import find_jar
from penstock.spark.scheduling import schedule_settings
from penstock.spark.spark_conf import (
    PROVIDER,
    PROVIDER_KEY,
    appended,
    defaults,
    has_our_commit,
    local_cores,
    makes_switches,
    refuse_connect,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

FILE_MANAGER_KEY = "spark.sql.streaming.checkpointFileManagerClass"
FILE_MANAGER = "penstock.checkpoint.PenstockFileManager"
PLUGIN = "penstock.PenstockPlugin"
EXTENSIONS = "penstock.PenstockExtensions"
MASTER_DEFAULT = "local[2]"
TOKEN_FOR_JVM = "PENSTOCK_SESSION_TOKEN"
"""The variable by which the plug-in in a JVM gets the token of the session that starts it."""


def session(
    master: str | None = None,
    *,
    url: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    data: str | Path | None = None,
    app_name: str = "penstock",
    conf: Mapping[str, Any] | None = None,
) -> SparkSession:
    """A Spark session with the plug-in loaded and a server behind it.

    `master` is local[2] unless given, or unless spark-submit has one. The server is the one at
    `url`, else the one PENSTOCK_URL names, else the running one of the `data` folder (default
    ./penstock-data), else a new one over that folder, which ends with the session or the process.
    `conf` holds further Spark settings. Tasks of queries with a deadline run in the order of their
    deadlines, unless `conf` says otherwise (`spark.penstock.schedule`, `spark.scheduler.mode`).
    Raises before Spark starts if anything is missing, and after it has started if the JVM has no
    plug-in of this version.
    """
    need_pyspark()
    from pyspark.sql import SparkSession

    from penstock.spark import jvm

    settings = {key: _text(value) for key, value in (conf or {}).items()}
    refuse_connect(settings)
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in {"spark.app.name": app_name, **settings}.items():
        builder = builder.config(key, value)
    if master is not None:
        builder = builder.master(master)
    elif "spark.master" not in settings and not jvm.is_running():
        builder = builder.master(MASTER_DEFAULT)
    find_jar()

    server, own = _server(url, token, ca, data)
    try:
        _attach(builder, _named(server), is_session=True)
        # The JVM runs before the token is among the builder's options, which PySpark puts on its
        # command line.
        jvm.launch(_options(builder))
        builder.config(plugin.TOKEN.name, server.token)
        spark = builder.getOrCreate()
        verify(spark)
    except BaseException:
        if own is not None:
            own.stop()
        raise
    default.use(Client(server.url, server.token, server.ca))
    if own is not None:
        _stop_together(spark, own)
    return spark


def attach(
    builder: SparkSession.Builder,
    *,
    url: str | None = None,
    token: str | None = None,
    ca: str | None = None,
    data: str | Path | None = None,
) -> SparkSession.Builder:
    """Add the plug-in to a builder, and the address of a server if one is known.

    Appends to `spark.jars`, and puts our checkpoint file manager before the one that is set, which
    then does for ours what it does for Spark. Settings that you have made stay, here and in
    spark-defaults.conf. Without a server the plug-in still serves checkpoints; `data` asks for the
    running server of that folder and fails without one. Call `verify(spark)` once Spark has
    started. The token of the server is handed to a JVM that is yet to start by this process's
    environment, not by the builder, whose options anybody can read on the JVM's command line.
    """
    need_pyspark()
    from penstock.spark import jvm

    server = _known_server(url, token, ca, data)
    _attach(builder, {} if server is None else _named(server), is_session=False)
    if server is not None and jvm.is_running():
        builder.config(plugin.TOKEN.name, server.token)
    elif server is not None:
        os.environ[TOKEN_FOR_JVM] = server.token
    return builder


def _attach(
    builder: SparkSession.Builder, connection: Mapping[str, str], *, is_session: bool
) -> None:
    from penstock.spark import jvm

    refuse_connect(_options(builder))
    jar = find_jar()
    if jvm.is_running():
        jvm.check_loaded(_how_to_start(str(jar.path)))
    user_conf = {**defaults(), **_options(builder)}
    if "--jars" in os.environ.get("PYSPARK_SUBMIT_ARGS", "").split() and not jvm.is_running():
        raise BadCall(
            "PYSPARK_SUBMIT_ARGS holds --jars, which hides spark.jars; "
            f"add {jar.path} to that list",
            code="hidden_jars",
        )
    settings = {
        "spark.jars": appended(user_conf.get("spark.jars"), str(jar.path)),
        "spark.plugins": appended(user_conf.get("spark.plugins"), PLUGIN),
        "spark.sql.extensions": appended(user_conf.get("spark.sql.extensions"), EXTENSIONS),
        **connection,
        **_state_store_settings(user_conf),
        **_file_manager_settings(user_conf),
        **schedule_settings(user_conf, is_session=is_session),
    }
    cores = local_cores(user_conf.get("spark.master"), os.cpu_count() or 1)
    if makes_switches(user_conf):
        settings |= switches_for(
            user_conf,
            is_local=cores is not None,
            starts_jvm=is_session and not jvm.is_running(),
            has_our_commit=has_our_commit(user_conf),
            environ=os.environ,
        )
    if is_session and not jvm.is_running() and (archive := archive_options(user_conf)):
        java_options = settings.get(COLLECTOR_KEY) or user_conf.get(COLLECTOR_KEY, "")
        settings[COLLECTOR_KEY] = f"{java_options} {archive}".strip()
    if cores is not None:
        settings["spark.sql.shuffle.partitions"] = str(cores)
    settings["spark.ui.showConsoleProgress"] = "false"
    for key in ("spark.sql.shuffle.partitions", "spark.ui.showConsoleProgress"):
        if key in user_conf:
            settings.pop(key, None)
    if "spark.pyspark.python" not in user_conf:
        # Without it workers run whatever `python3` is first on the path, and time out.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for key, value in settings.items():
        builder.config(key, value)


def verify(spark: SparkSession) -> str:
    """The plug-in's version in the running session; raises BadCall unless it is ours and in use."""
    need_pyspark()
    from penstock.spark import jvm

    version = jvm.check_loaded(_how_to_start(str(find_jar().path)))
    used = spark.conf.get(FILE_MANAGER_KEY, "")
    if used != FILE_MANAGER:
        raise BadCall(
            f"{FILE_MANAGER_KEY} is {used or 'not set'} in this session; start it from a builder "
            "that penstock.attach() was called on",
            code="not_attached",
        )
    return version


def commit_steps(query: StreamingQuery) -> dict[str, dict[str, float]]:
    """Steps of a running query's commits and the waits for them, with their times.

    For each step, such as "flush" or "wait for release": "count", "total_ms" and "max_ms". Empty
    for a query whose commits are made as Spark makes them, and for one that has stopped. Raises
    BadCall where the query is not one of a JVM with the plug-in.
    """
    need_pyspark()
    from penstock.spark import jvm

    if not jvm.is_running():
        raise BadCall("no Spark runs in this process; start a query first", code="no_plug_in")
    return jvm.commit_steps(str(query.id))


def batch_steps(query: StreamingQuery) -> list[BatchSteps]:
    """Ledgers of a running query's last batches, oldest first: where the time of each went.

    `wall_ms` has the steps on the stream's thread and adds up to Spark's `triggerExecution`;
    `task_ms` splits what tasks did, summed over them; `counters` has requests, collections and the
    like. Empty for a query that has stopped. Raises BadCall where the query is not one of a JVM
    with the plug-in.
    """
    need_pyspark()
    from penstock.spark import jvm

    if not jvm.is_running():
        raise BadCall("no Spark runs in this process; start a query first", code="no_plug_in")
    return ledgers(jvm.batch_records(str(query.id)))


def plan_notes(query: StreamingQuery) -> list[PlanNote]:
    """Notes on the plan of a running query: what the plug-in's rules changed or left to Spark.

    One for each rule and stateful operator that it has looked at, by rule and operator. Empty
    before the first batch is planned and for a query that has stopped. Raises BadCall where the
    query is not one of a JVM with the plug-in.
    """
    need_pyspark()
    from penstock.spark import jvm

    if not jvm.is_running():
        raise BadCall("no Spark runs in this process; start a query first", code="no_plug_in")
    return notes_in(jvm.plan_notes(str(query.runId)))


def _server(
    url: str | None, token: str | None, ca: str | None, data: str | Path | None
) -> tuple[Address, server_process.OwnServer | None]:
    in_environment = address.from_environment() if data is None else None
    if url is not None or in_environment is not None:
        named = address.find(url, token, ca)
        assert named is not None
        return named, None
    folder = Path(data if data is not None else address.DATA_DEFAULT).absolute()
    running = server_process.running(folder)
    if running is not None:
        return running, None
    try:
        own = server_process.start(folder)
    except TryAgain:
        # Another process may have won the folder while ours was starting.
        running = server_process.running(folder)
        if running is None:
            raise
        return running, None
    return own.address, own


def _known_server(
    url: str | None, token: str | None, ca: str | None, data: str | Path | None
) -> Address | None:
    """The server that was named, or that runs; None if none was named and none runs."""
    if url is not None or (data is None and address.from_environment() is not None):
        server = address.find(url, token, ca)
    else:
        server = server_process.running(Path(data if data is not None else address.DATA_DEFAULT))
    if server is None and data is not None:
        raise address.no_server(data)
    return server


def _named(server: Address) -> dict[str, str]:
    """Settings that say where a server is, which anybody may know."""
    named = {plugin.URL.name: server.url}
    return named if server.ca is None else {**named, plugin.CA.name: server.ca}


def _state_store_settings(user_conf: Mapping[str, str]) -> dict[str, str]:
    """Settings of the state store that a commit behind the query needs, where none is set."""
    if not has_our_commit(user_conf):
        return {}
    settings = {
        PROVIDER_KEY: PROVIDER,
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    return {key: value for key, value in settings.items() if key not in user_conf}


def _file_manager_settings(user_conf: Mapping[str, str]) -> dict[str, str]:
    """Ours, and behind it the one that the user has set."""
    settings = {FILE_MANAGER_KEY: FILE_MANAGER}
    theirs = user_conf.get(FILE_MANAGER_KEY, FILE_MANAGER)
    if theirs != FILE_MANAGER:
        settings[plugin.CHECKPOINT_FILE_MANAGER.name] = theirs
    return settings


def _how_to_start(jar: str) -> str:
    from penstock.spark import jvm

    if jvm.is_submitted():
        script = sys.argv[0] if sys.argv and sys.argv[0] else "SCRIPT"
        return f"start it with: spark-submit --jars {jar} {script}"
    return (
        "call penstock.session() or penstock.attach() before anything else starts Spark in this "
        f"process; in a shell, start it with: pyspark --jars {jar}"
    )


def _stop_together(spark: SparkSession, own: server_process.OwnServer) -> None:
    stop_spark = spark.stop

    def stop() -> None:
        try:
            stop_spark()
        finally:
            default.use(None)
            own.stop()

    def stop_at_exit() -> None:
        if own.is_running():
            # The JVM may be gone already; the server must be stopped all the same.
            with contextlib.suppress(Exception):
                stop()
        own.stop()

    # Spark has no hook for this in Python, and its queries must end before their server does.
    spark.stop = stop  # type: ignore[method-assign]
    atexit.register(stop_at_exit)


def _options(builder: SparkSession.Builder) -> dict[str, str]:
    return {key: str(value) for key, value in builder._options.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
