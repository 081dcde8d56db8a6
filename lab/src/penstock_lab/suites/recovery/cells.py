"""Cells of the recovery suite: which system, and what is killed under it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_lab.experiment import systems
from penstock_lab.measure.recoveries import (
    DRIVER_COLD,
    DRIVER_WARM,
    EXECUTOR,
    LOCAL_KILLS,
    SERVER,
    RecoverySystem,
)

QUERY = "q18"
SPARK, OURS, IN_LOG = "spark", "penstock", "penstock-log"
SYSTEMS = {
    system.name: system
    for system in (
        RecoverySystem(SPARK, "tuned", "Spark's own commit, over the same log"),
        RecoverySystem(OURS, "penstock", "ours, snapshots in the checkpoint location"),
        RecoverySystem(
            IN_LOG,
            "penstock",
            "ours, snapshots in the log too",
            {"spark.penstock.commit.snapshots": "log"},
        ),
    )
}
KILLS = (*LOCAL_KILLS, EXECUTOR)
WORDS = {
    DRIVER_COLD: "the driver; a new process is started",
    DRIVER_WARM: "the driver; a process that is up takes over",
    SERVER: "the server, started again at once",
    EXECUTOR: "one of two executors",
}
# Seconds on quiet cores.
LOCAL_S, CLUSTER_S, FILL_S = 65.0, 60.0, 35.0


class Plan(msgspec.Struct, frozen=True):
    """The plan: all that figures depend on; written into the result file as it is."""

    systems: tuple[str, ...]
    kills: tuple[str, ...]
    repeats: int
    rate: int = 1_000
    batches_between: int = 12
    auctions: int = 60_000
    fill_events: int = 200_000

    @property
    def local_kills(self) -> tuple[str, ...]:
        return tuple(kill for kill in LOCAL_KILLS if kill in self.kills)

    @property
    def clustered(self) -> tuple[str, ...]:
        """Systems that are run on a cluster: where snapshots are makes no difference there."""
        names = self.systems if EXECUTOR in self.kills else ()
        return tuple(name for name in names if name != IN_LOG)

    @property
    def steps(self) -> int:
        local = len(self.systems) if self.local_kills else 0
        return len(self.systems) + self.repeats * (local + len(self.clustered))

    @property
    def minutes(self) -> float:
        local = len(self.systems) if self.local_kills else 0
        runs_s = local * LOCAL_S + len(self.clustered) * CLUSTER_S
        return (len(self.systems) * FILL_S + self.repeats * runs_s) / 60

    @property
    def generator(self) -> dict[str, Any]:
        return {"auctions_in_flight": self.auctions, "people_active": self.auctions // 3}


def plan_of(*, quick: bool = False, kills: Sequence[str] = ()) -> Plan:
    """The plan of a command line."""
    return Plan(tuple(SYSTEMS), tuple(kills) or KILLS, repeats=3 if quick else 10)


def settings(plan: Plan) -> dict[str, Any]:
    conf = {
        name: {**systems.system(SYSTEMS[name].system).conf, **SYSTEMS[name].conf}
        for name in plan.systems
    }
    return {**msgspec.to_builtins(plan), "query": QUERY, "spark": conf}
