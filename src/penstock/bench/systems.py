"""The systems compared: Spark settings, and where rows come from and go to; nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import BadCall

PROVIDER = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
TUNED = {
    **PROVIDER,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


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
        System("default", "Spark with the RocksDB provider, else as it comes", PROVIDER),
        System("tuned", "the same with changelog checkpoints, and rows not counted", TUNED),
        System("penstock", "every mechanism there is, at its default", TUNED),
        System("default-files", "default, from and to files", PROVIDER, "files"),
        System("tuned-files", "tuned, from and to files", TUNED, "files"),
    )
}
QUICK = ("default", "tuned", "penstock")
FULL = tuple(SYSTEMS)


def system(name: str) -> System:
    if name not in SYSTEMS:
        raise BadCall(
            f"there is no system {name!r}; there is {', '.join(SYSTEMS)}", code="unknown_system"
        )
    return SYSTEMS[name]
