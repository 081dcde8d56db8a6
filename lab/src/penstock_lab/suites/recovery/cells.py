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
SPARK, OURS, IN_LOG, BARE = "spark", "penstock", "penstock-log", "penstock-bare"
SPARK_ARCHIVE = "spark-archive"
SYSTEMS = {
    system.name: system
    for system in (
        RecoverySystem(
            SPARK, "tuned", "batches, commits and files of Spark's own, over the same log"
        ),
        RecoverySystem(
            SPARK_ARCHIVE,
            "tuned",
            "the same, drivers with an archive of classes",
            has_archive=True,
            filled_as=SPARK,
        ),
        RecoverySystem(
            OURS,
            "penstock",
            "every mechanism, snapshots in the checkpoint location, drivers with that archive",
            has_archive=True,
        ),
        RecoverySystem(
            IN_LOG,
            "penstock",
            "ours, snapshots in the log too",
            {"spark.penstock.commit.snapshots": "log"},
            has_archive=True,
        ),
        RecoverySystem(BARE, "penstock", "ours without that archive", filled_as=OURS),
    )
}
ON_CLUSTER = (SPARK, OURS, IN_LOG)
"""Systems whose executors are killed: how a driver starts makes no difference to these."""
KILLS = (*LOCAL_KILLS, EXECUTOR)
WORDS = {
    DRIVER_COLD: "the driver; a new process is started",
    DRIVER_WARM: "the driver; a process that is up takes over",
    SERVER: "the server, started again at once",
    EXECUTOR: "one of two executors",
}
# Seconds on quiet cores. Around the kills of a run: its first driver, its last rows, its answer.
AROUND_S, CLUSTER_S, FILL_S, ARCHIVE_S = 25.0, 60.0, 35.0, 60.0
KILL_S = {DRIVER_COLD: 14.0, DRIVER_WARM: 16.0, SERVER: 10.0}
"""Of each kill: batches before it, another driver that is up by then, the recovery."""


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
        """Systems of this plan on a cluster."""
        names = self.systems if EXECUTOR in self.kills else ()
        return tuple(name for name in names if name in ON_CLUSTER)

    @property
    def filled(self) -> tuple[str, ...]:
        """Systems that fill a state; the others go on from that of one of these."""
        return tuple(name for name in self.systems if self.fill_of(name) == name)

    def fill_of(self, system: str) -> str:
        """The system whose filled state this one goes on from."""
        other = SYSTEMS[system].filled_as
        return other if other in self.systems else system

    def local_kills_of(self, system: str) -> tuple[str, ...]:
        """Kills on one machine; how drivers start makes no difference to a killed server."""
        shares = self.fill_of(system) != system
        return tuple(kill for kill in self.local_kills if kill != SERVER or not shares)

    @property
    def steps(self) -> int:
        return len(self.filled) + self.repeats * (self.local_runs + len(self.clustered))

    @property
    def local_runs(self) -> int:
        """Runs of a repeat on one machine."""
        return sum(bool(self.local_kills_of(name)) for name in self.systems)

    @property
    def minutes(self) -> float:
        """About how long it takes: a run is as long as the kills that are made in it."""
        local = [kill for name in self.systems for kill in self.local_kills_of(name)]
        runs_s = self.local_runs * AROUND_S + sum(KILL_S[kill] for kill in local)
        runs_s += len(self.clustered) * CLUSTER_S
        archive_s = ARCHIVE_S if any(SYSTEMS[name].has_archive for name in self.systems) else 0.0
        return (archive_s + len(self.filled) * FILL_S + self.repeats * runs_s) / 60

    @property
    def generator(self) -> dict[str, Any]:
        return {"auctions_in_flight": self.auctions, "people_active": self.auctions // 3}


def plan_of(*, quick: bool = False, kills: Sequence[str] = (), repeats: int | None = None) -> Plan:
    """The plan of a command line."""
    return Plan(tuple(SYSTEMS), tuple(kills) or KILLS, repeats or (3 if quick else 10))


def settings(plan: Plan) -> dict[str, Any]:
    conf = {
        name: {**systems.system(SYSTEMS[name].system).conf, **SYSTEMS[name].conf}
        for name in plan.systems
    }
    return {**msgspec.to_builtins(plan), "query": QUERY, "spark": conf}
