"""Bugs planted where a log answers before its sync, each a class that differs in one decision."""

from __future__ import annotations

from typing import Any

from penstock.log.operations import Operation
from penstock.log.store.view import StoreView
from penstock.log.view import Place
from penstock.model.ids import Lsn
from simulation.log.actors import LogParts
from simulation.log.replica import Replica
from simulation.log.servers import Call, Server
from simulation.planted_log_bugs import SMALL, Planted


class AnyStartView(StoreView):
    """Whatever any start gave is there."""

    def given_below(self, start: int) -> Lsn:
        return Lsn(1 << 62)


class MarkerOfAnotherStartTaken(Replica):
    def look(
        self, operation: Operation, wall_ms: int, places: tuple[Place, ...] | None = None
    ) -> StoreView:
        return AnyStartView(self.txn, self.tables, wall_ms, places, self.rules)


class StartNumberUsedAgain(Server):
    @property
    def start_number(self) -> int:
        return 1_000


class OffsetsAnsweredEarly(Server):
    def is_early(self, call: Call) -> bool:
        return call.is_early


# Server crashes, and several attempts at each task, of which many have no rows.
CRASHES: dict[str, Any] = {
    **SMALL,
    "servers": 1,
    "early": True,
    "substreams": 2,
    "attempts_max": 3,
    "faults": (0, 0, 0, 0, 1, 0, 0),
    "fault_rate": 0.08,
    "lost": 0.0,
    "speeds": (8.0, 1.0, 8.0, 1.0, 1.0, 1.0, 0.2, 0.02, 0.0, 0.1, 0.5),
}

EARLY: dict[str, Planted] = {
    "marker of another start taken": Planted(
        LogParts(replica=MarkerOfAnotherStartTaken), "a place used twice", CRASHES, seeds=200
    ),
    "number of a start used again": Planted(
        LogParts(server=StartNumberUsedAgain), "a place used twice", CRASHES, seeds=200
    ),
    "offsets answered before the sync": Planted(
        LogParts(server=OffsetsAnsweredEarly),
        "invariant 6",
        {**CRASHES, "cut_max": 4, "producers": 3, "appends": 6},
    ),
}
