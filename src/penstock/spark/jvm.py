"""The plug-in in a running JVM, asked over py4j; no other file touches py4j.

The driver's class path is fixed when its JVM starts, and a missing plug-in shows only when a query
first asks for it. So it is asked for by name, right after start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext

from penstock.errors import BadCall
from penstock.spark.jar import our_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FORMAT = "penstock"
VERSION_CLASS = "penstock.Version"
RESOURCES_CLASS = "penstock.commit.jvm.JvmResources"


def is_running(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this process has a JVM already: started by PySpark, or its parent spark-submit."""
    return SparkContext._gateway is not None or is_submitted(environ)


def is_submitted(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether spark-submit started this process, after the JVM it belongs to."""
    return "PYSPARK_GATEWAY_PORT" in environ


def launch(settings: Mapping[str, str]) -> None:
    """Start the JVM, or connect to the one there is; `settings` reach the JVM's command line.

    A command line can be read by every user of the machine, so no secret may be among them.
    """
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    SparkContext._ensure_initialized(conf=conf)


def end(timeout_s: float = 300.0) -> None:
    """End the JVM that this process has started, and wait until it is gone."""
    gateway: Any = SparkContext._gateway
    process = gateway.proc
    # A JVM of PySpark's ends with the pipe from the process that has started it.
    process.stdin.close()
    process.wait(timeout_s)


def loaded_version() -> str | None:
    """The version of the plug-in in the running JVM; None when its class cannot be found."""
    launch({})
    try:
        return _call_static(VERSION_CLASS, "current")
    except Py4JJavaError as error:
        if "ClassNotFoundException" in str(error.java_exception):
            return None
        raise


def commit_steps(query_id: str) -> dict[str, dict[str, float]]:
    """Steps of a running query's commits: how often each was taken, and how long, in ms.

    Empty for a query whose commits are made as Spark makes them, and for one that has stopped.
    """
    try:
        steps: dict[str, dict[str, float]] = json.loads(
            _call_static(RESOURCES_CLASS, "stepsJson", query_id)
        )
    except Py4JJavaError:
        check_loaded("call penstock.session() or penstock.attach() before Spark is started")
        raise
    return steps


def batch_records(query_id: str) -> str:
    """Records of the last batches of a running query, as the plug-in's JSON."""
    try:
        return _call_static(RESOURCES_CLASS, "batchesJson", query_id)
    except Py4JJavaError:
        check_loaded("call penstock.session() or penstock.attach() before Spark is started")
        raise


def plan_notes(run_id: str) -> str:
    """Notes of the plug-in's rules on the plan of a run, as its JSON."""
    try:
        return _call_static(RESOURCES_CLASS, "planNotesJson", run_id)
    except Py4JJavaError:
        check_loaded("call penstock.session() or penstock.attach() before Spark is started")
        raise


def prefetch_counts(run_id: str) -> str:
    """Counts of the prefetching of one run of a query, as the plug-in's JSON."""
    try:
        return _call_static(RESOURCES_CLASS, "prefetchJson", run_id)
    except Py4JJavaError:
        check_loaded("call penstock.session() or penstock.attach() before Spark is started")
        raise


def declare_delay(ms: int) -> None:
    """Have reads that are slow by `spark.penstock.prefetch.reads` wait so long from now on."""
    _call_static(RESOURCES_CLASS, "declareDelay", str(ms))


def streams_read(frame: DataFrame) -> list[str]:
    """Names of the streams of the log that a streaming frame reads, each once."""
    leaves: Any = frame._jdf.queryExecution().analyzed().collectLeaves()
    streams = []
    for place in range(leaves.size()):
        leaf = leaves.apply(place)
        if leaf.getClass().getSimpleName() == "StreamingRelationV2" and leaf.sourceName() == FORMAT:
            options = leaf.extraOptions()
            streams.append(options.get("path") or options.get("stream"))
    return [str(stream) for stream in dict.fromkeys(streams) if stream]


def _call_static(class_name: str, method: str, *arguments: str) -> str:
    """Answer of a static method of the plug-in that takes texts."""
    gateway: Any = SparkContext._gateway
    lang = gateway.jvm.java.lang
    # Classes from spark.jars are known to the thread's loader only, not to the one py4j uses.
    loaded = lang.Thread.currentThread().getContextClassLoader().loadClass(class_name)
    kinds = gateway.new_array(lang.Class, len(arguments))
    values = gateway.new_array(lang.Object, len(arguments))
    for place, argument in enumerate(arguments):
        kinds[place] = lang.Class.forName("java.lang.String")
        values[place] = argument
    return str(loaded.getMethod(method, kinds).invoke(None, values))


def check_loaded(remedy: str) -> str:
    """The plug-in's version, if it is ours; else BadCall, with `remedy` when there is none."""
    version = loaded_version()
    if version is None:
        raise BadCall(
            f"the running JVM was started without the plug-in; {remedy}", code="no_plug_in"
        )
    if version != our_version():
        raise BadCall(
            f"the JVM runs version {version} of the plug-in, and this package is {our_version()}; "
            "use the jar of this version",
            code="other_version",
        )
    return version
