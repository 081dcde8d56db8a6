"""The systems compared: Spark settings, and where rows come from and go to; nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import BadCall
from penstock.settings.switches import jvm_switches
from penstock.spark.session import EXTENSIONS, FILE_MANAGER, FILE_MANAGER_KEY, PLUGIN

PROVIDER_KEY = "spark.sql.streaming.stateStore.providerClass"
PROVIDER = {
    PROVIDER_KEY: "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
}
CHANGELOG_KEY = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
FORMAT_KEY = "spark.sql.streaming.stateStore.checkpointFormatVersion"
NOT_COUNTED = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false"}
FORMAT = {FORMAT_KEY: "2"}
SAME_STORE = {**NOT_COUNTED, **FORMAT}
"""Of all systems whose commits are compared, so that they write the same files of state."""
TUNED_STORE = {CHANGELOG_KEY: "true", **NOT_COUNTED}
TUNED = {**PROVIDER, **TUNED_STORE, **FORMAT}
"""Format and changelog are those that our sessions add, and `penstock` counts no rows either."""
MODE_KEY = "spark.penstock.commit.mode"
LOCAL_FILES_KEY = "spark.penstock.checkpoint.localFiles"
OUR_FILES = {LOCAL_FILES_KEY: "direct"}
"""Files of a location on a local disk, written without a process for every rename."""
SPARKS_BATCH = {
    "spark.penstock.batch.switches": "false",
    "spark.penstock.batch.hadoopConf": "spark",
    "spark.penstock.batch.watermark": "spark",
    "spark.penstock.eviction": "spark",
    "spark.penstock.devices": "spark",
    "spark.penstock.windows": "spark",
}
"""Batches as Spark makes them, also where only the commit is compared."""
SYNC = {MODE_KEY: "sync", LOCAL_FILES_KEY: "spark", **SPARKS_BATCH}
"""Batches, commits and files as Spark makes them; the session is made the same way for all."""
SAME_JVM = jvm_switches({}, os.environ)
"""Heap, collector and sockets of Python workers are those of our sessions, whatever is compared."""
BEHIND = {
    PROVIDER_KEY: "org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider",
    CHANGELOG_KEY: "true",
    **SAME_STORE,
    **OUR_FILES,
    **SPARKS_BATCH,
}
"""What a commit behind the query stands on."""
JAR_ALONE = {
    "spark.plugins": PLUGIN,
    "spark.sql.extensions": EXTENSIONS,
    FILE_MANAGER_KEY: FILE_MANAGER,
}
"""The plug-in switched on by hand, as spark-submit does it: no session of ours, no server."""


ALL_PROGRESS = {"spark.sql.streaming.numRecentProgressUpdates": "5000"}
"""Spark is to remember every batch of a query: more than any run has."""
ONE_PATH = {"spark.penstock.devices": "panes"}
"""One path below the shuffle for all batches, where only the moments and sizes of cuts differ."""


@dataclass(frozen=True)
class System:
    """A system under test. Shuffle partitions are as many as cores, for all of them."""

    name: str
    description: str
    conf: dict[str, str] = field(default_factory=dict)
    rows: Literal["log", "files"] = "log"
    """Between which the query stands: streams of the log, or folders of Parquet files."""
    replicas: int = 1
    """Copies of the log: more than one are in JetStream, each on a server of its own."""


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "default", "Spark with the RocksDB provider, else as it comes", {**PROVIDER, **SYNC}
        ),
        System(
            "tuned",
            "the same with changelog checkpoints in format 2, and rows not counted",
            {**TUNED, **SYNC},
        ),
        System("penstock", "every mechanism there is, at its default", NOT_COUNTED),
        System(
            "tuned+files",
            "tuned, files of a local checkpoint location written as Penstock does",
            {**TUNED, **SYNC, **OUR_FILES},
        ),
        System(
            "asyncckpt",
            "tuned, its state files copied behind the query",
            {**BEHIND, MODE_KEY: "asyncckpt"},
        ),
        System(
            "zstream",
            "default, its batches cut by the policy of zStream",
            {**PROVIDER, **SYNC},
        ),
        System("full", "tuned, all of its commit behind the query", {**BEHIND, MODE_KEY: "full"}),
        System(
            "full-replicated",
            "full, its log in JetStream on three servers",
            {**BEHIND, MODE_KEY: "full"},
            replicas=3,
        ),
        System("default-files", "default, from and to files", PROVIDER, "files"),
        System("tuned-files", "tuned, from and to files", TUNED, "files"),
        System(
            "plug-in-sync",
            "tuned-files and the jar, for files of a local checkpoint location alone; no server",
            {**JAR_ALONE, **TUNED, **SYNC, **OUR_FILES},
            "files",
        ),
        System(
            "plug-in",
            "tuned-files and the jar alone: all of its commit behind the query, no server",
            {**JAR_ALONE, **BEHIND, MODE_KEY: "full"},
            "files",
        ),
    )
}
QUICK = ("default", "tuned", "penstock")
FULL = (*QUICK, "default-files", "tuned-files")


def system(name: str) -> System:
    if name not in SYSTEMS:
        raise BadCall(
            f"there is no system {name!r}; there is {', '.join(SYSTEMS)}", code="unknown_system"
        )
    return SYSTEMS[name]
