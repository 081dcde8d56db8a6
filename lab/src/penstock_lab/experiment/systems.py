"""The systems compared: Spark settings, and where rows come from and go to; nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import BadCall
from penstock.settings.switches import jvm_switches

PROVIDER = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
CHANGELOG_KEY = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
NOT_COUNTED = {"spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false"}
TUNED = {**PROVIDER, CHANGELOG_KEY: "true", **NOT_COUNTED}
MODE_KEY = "spark.penstock.commit.mode"
SPARKS_BATCH = {
    "spark.penstock.batch.switches": "false",
    "spark.penstock.batch.hadoopConf": "spark",
    "spark.penstock.batch.watermark": "spark",
    "spark.penstock.eviction": "spark",
}
"""Batches as Spark makes them, also where only the commit is compared."""
SYNC = {MODE_KEY: "sync", **SPARKS_BATCH}
"""Batches and commits as Spark makes them; the session is made the same way for all."""
SAME_JVM = jvm_switches({}, os.environ)
"""Heap and collector are those of our sessions, whatever is compared."""
BEHIND = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.PenstockStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    CHANGELOG_KEY: "true",
    **NOT_COUNTED,
    **SPARKS_BATCH,
}
"""What a commit behind the query stands on."""


ALL_PROGRESS = {"spark.sql.streaming.numRecentProgressUpdates": "5000"}
"""Spark is to remember every batch of a query: more than any run has."""


@dataclass(frozen=True)
class System:
    """A system under test. Shuffle partitions are as many as cores, for all of them."""

    name: str
    what: str
    conf: dict[str, str] = field(default_factory=dict)
    rows: Literal["log", "files"] = "log"
    """Between which the query stands: streams of the log, or folders of Parquet files."""


SYSTEMS = {
    system.name: system
    for system in (
        System(
            "default", "Spark with the RocksDB provider, else as it comes", {**PROVIDER, **SYNC}
        ),
        System(
            "tuned", "the same with changelog checkpoints, and rows not counted", {**TUNED, **SYNC}
        ),
        System("penstock", "every mechanism there is, at its default", NOT_COUNTED),
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
        System("default-files", "default, from and to files", PROVIDER, "files"),
        System("tuned-files", "tuned, from and to files", TUNED, "files"),
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
