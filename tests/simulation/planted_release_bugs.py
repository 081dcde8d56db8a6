"""Bugs planted in the simulated world, each by a class that differs in one decision."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.commit.events import (
    DeleteAsked,
    Effect,
    Event,
    OffsetsWritten,
    PieceDurable,
    PieceWritten,
    PutMarker,
    PutOffsets,
)
from penstock.commit.release import Batch, Release
from simulation.release.driver import Asked, Run
from simulation.release.early_places import Entry
from simulation.release.executors import Attempt, Executor, Held
from simulation.release.setup import Cut
from simulation.release.stores import Location, Log, Marker, Piece, Refused, Snapshot
from simulation.release.world import Parts


class MarkerBeforeTheLastAck(Release):
    def _is_durable(self, batch: Batch, required: frozenset[str]) -> bool:
        return all(batch.pieces.is_known(piece) for piece in required)


class AckOfSupersededWriteCounted(Release):
    def on(self, event: Event) -> list[Effect]:
        if isinstance(event, PieceDurable):
            event = msgspec.structs.replace(event, generation=99)
        return super().on(event)


class RepeatedAckTakenForAnotherWrite(Release):
    def on(self, event: Event) -> list[Effect]:
        if isinstance(event, PieceWritten):
            pieces = self._batch(event.batch).pieces
            pieces.writes.get(event.piece, {}).pop(event.writer, None)
        return super().on(event)


class PieceNobodyToldOfWaitedFor(Release):
    def _is_piece_lost(self, batch: Batch, piece: str) -> bool:
        return batch.pieces.is_lost(piece, self._lost)


class LateWordOfLostWriterBelieved(Release):
    def on(self, event: Event) -> list[Effect]:
        if isinstance(event, PieceWritten):
            self._lost.discard(event.writer)
        return super().on(event)


class DeleteReleasedAtOnce(Release):
    def on(self, event: Event) -> list[Effect]:
        effects = super().on(event)
        if isinstance(event, DeleteAsked) and self._deletes:
            self._deletes[-1] = (-1, event.path)
            effects += self._next()
        return effects


class OffsetsReleasedAtOnce(Release):
    def on(self, event: Event) -> list[Effect]:
        effects = super().on(event)
        if isinstance(event, OffsetsWritten):
            effects += self._ask(PutOffsets(event.batch))
        return effects


class NextBatchNeverWaits(Release):
    def may_compute(self, batch: int) -> bool:
        return True


class LocationFallsBehind(Release):
    def may_compute(self, batch: int) -> bool:
        return self.committed >= batch - 2


class SnapshotShownBeforeItsBatch(Release):
    def may_show_snapshot(self, batch: int, *, is_required: bool) -> bool:
        return True


class SnapshotShownBeforeTheCopy(Release):
    def may_show_snapshot(self, batch: int, *, is_required: bool) -> bool:
        return batch <= (self.released if is_required else self.committed)


class EverySnapshotTakenForRequired(Release):
    def may_show_snapshot(self, batch: int, *, is_required: bool) -> bool:
        return super().may_show_snapshot(batch, is_required=True)


class LargePieceTakenForSmall(Release):
    def may_make_durable(self, batch: int, *, is_large: bool) -> bool:
        return super().may_make_durable(batch, is_large=False)


class OffsetsKeptWhileStateWaits(Release):
    def _may_wait_for_marker(self, number: int, batch: Batch) -> bool:
        return self.offsets_in_marker and batch.offsets


class OffsetsCutAnew(Run):
    def recorded(self, first: int) -> Cut | None:
        return None


class CommitLogBeforeMarker(Run):
    def act(self, job: Asked) -> bool:
        if isinstance(job.effect, PutMarker):
            commit = self.commits[job.effect.batch]
            if commit.batch not in self.ground.location.commits:
                self.ground.location.create_commit(commit)
                return False
        return super().act(job)


class LocationNotBroughtUp(Run):
    def bring_up(self) -> bool:
        return False


class TakenOverAfterReading(Run):
    def step(self) -> bool:
        if self.phase == "take over":
            self.phase = "take over" if self.bring_up() else "fence"
            return True
        if self.phase == "fence":
            self.instance = self.ground.log.take_over()
            self.phase = "read"
            return True
        return super().step()


class CommitCopiedBeforeItsState(Run):
    def copy_file(self, batch: int) -> bool:
        location, marker = self.ground.location, self.ground.log.markers[batch]
        if batch in location.offsets and batch not in location.commits:
            location.create_commit(marker.commit)
            return True
        return super().copy_file(batch)


class MarkerNamesTheLastAttempt(Run):
    def marker(self, batch: int, writes: dict[str, tuple[str, int]]) -> Marker:
        marker = super().marker(batch, writes)
        rows = [row for row in self.ground.log.rows if row[:2] == (self.instance, batch)]
        last = tuple(max(row for row in rows if row[2] == won[2]) for won in marker.outputs)
        return marker._replace(outputs=last)


class StaleLocalFileTrusted(Executor):
    def find(self, name: str) -> Piece | None:
        held = self.held.get(name)
        if held is not None:
            return held.piece
        return self.run.ground.disks.get(self.host, {}).get(name) or super().find(name)


class GateMissing(Executor):
    def gate(self, attempt: Attempt) -> bool:
        return True


class StateCopiedBeforeReleased(Executor):
    def may_copy(self, held: Held) -> bool:
        return True


class SnapshotsKeptTooShort(Executor):
    def put_snapshot(self, name: str, snapshot: Snapshot) -> None:
        self.run.ground.location.put_snapshot(name, snapshot)
        self.run.ground.location.clean(snapshot.partition, 1)


class FenceMissing(Log):
    def check_fence(self, instance: int) -> None:
        pass


class MarkerWithoutItsOffsets(Log):
    def append_marker(self, marker: Marker, *, has_offsets: bool) -> None:
        super().append_marker(marker, has_offsets=False)


class MarkerOfAnotherStartTaken(Log):
    def check_starts(self, marker: Marker) -> None:
        pass


class OffsetsAnsweredEarly(Log):
    def put_offsets(self, instance: int, batch: int, cut: Cut) -> None:
        self.check_fence(instance)
        self.offsets[batch] = cut
        self.early.unsynced.add(("offsets", batch))
        self.journal.append(("offsets", (batch, cut)))

    def lose(self, entry: Entry) -> None:
        super().lose(entry)
        if entry[0] == "offsets":
            self.offsets.pop(entry[1], None)


class OnlyTheFileItselfLookedAt(Location):
    def check_new(self, batch: int, present: Collection[int]) -> None:
        if batch in present:
            raise Refused(f"batch {batch} is there")


@dataclass(frozen=True)
class Planted:
    """`report` is in the sentence that names it: by its own invariant, not by an accident.

    `where` fixes parts of the setup for bugs that show only in some.
    """

    parts: Parts
    report: str
    where: dict[str, Any] = field(default_factory=dict)


# Speeds: driver, tasks, acks, copies, log, location, snapshots, losses. Faults: crash, zombie,
# executor, failed attempt, speculation, second write.
LOSSES: dict[str, Any] = {"faults": (0, 0, 4, 1, 1, 0), "speeds": (4, 4, 0.2, 1, 1, 1, 1, 4)}
ATTEMPTS: dict[str, Any] = {
    "with_log": True,
    "sink": "log",
    "format": 2,
    "faults": (0, 0, 0, 0, 1, 0),
    "speeds": (0.2, 4, 4, 4, 0.2, 1, 1, 1),
}
CRASHES: dict[str, Any] = {
    "format": 1,
    "executors": 3,
    "faults": (1, 0, 0, 0, 0, 0),
    "speeds": (4, 4, 4, 1, 0.2, 0.2, 1, 1),
}
ZOMBIES: dict[str, Any] = {
    "with_log": False,
    "sink": "foreach",
    "retain": 1,
    "batches": 9,
    "fault_rate": 0.02,
    "faults": (0, 1, 0, 0, 0, 0),
}
SLOW_LOCATION: dict[str, Any] = {
    "with_log": True,
    "behind": 3,
    "retain": 1,
    "faults": (1, 0, 0, 0, 0, 0),
    "speeds": (4, 4, 4, 4, 4, 0.1, 4, 1),
}
OFFSETS_IN_MARKER: dict[str, Any] = {"with_log": True, "sink": "log", "offsets_in_marker": True}
EARLY: dict[str, Any] = {"with_log": True, "early": True, "faults": (1, 0, 0, 0, 0, 0)}

PLANTED = {
    "marker before the last ack": Planted(Parts(release=MarkerBeforeTheLastAck), "invariant 3"),
    "ack of a superseded write counted": Planted(
        Parts(release=AckOfSupersededWriteCounted), "invariant 3"
    ),
    "repeated ack taken for another write": Planted(
        Parts(release=RepeatedAckTakenForAnotherWrite), "stuck"
    ),
    "piece nobody told of waited for": Planted(
        Parts(release=PieceNobodyToldOfWaitedFor), "stuck", {**LOSSES, "told_first": False}
    ),
    "late word of a lost writer believed": Planted(
        Parts(release=LateWordOfLostWriterBelieved), "stuck", LOSSES
    ),
    "delete released at once": Planted(Parts(release=DeleteReleasedAtOnce), "invariant 7"),
    "offsets released at once": Planted(Parts(release=OffsetsReleasedAtOnce), "invariant 3"),
    "next batch never waits": Planted(Parts(release=NextBatchNeverWaits), "invariant 4"),
    "location falls behind": Planted(
        Parts(release=LocationFallsBehind), "invariant 4", {**SLOW_LOCATION, "behind": 0}
    ),
    "snapshot shown before its batch": Planted(
        Parts(release=SnapshotShownBeforeItsBatch), "invariant 2"
    ),
    "snapshot shown before the copy": Planted(
        Parts(release=SnapshotShownBeforeTheCopy), "invariant 7", SLOW_LOCATION
    ),
    "required snapshot shown before its offsets": Planted(
        Parts(release=SnapshotShownBeforeItsBatch), "invariant 2", {"pieces": "snapshot"}
    ),
    "every snapshot taken for required": Planted(
        Parts(release=EverySnapshotTakenForRequired), "invariant 2", {"pieces": "large"}
    ),
    "large piece taken for small": Planted(
        Parts(release=LargePieceTakenForSmall),
        "invariant 2",
        {"with_log": True, "pieces": "large"},
    ),
    "snapshots kept too short": Planted(
        Parts(executor=SnapshotsKeptTooShort),
        "invariant 7",
        {**SLOW_LOCATION, "pieces": "snapshot"},
    ),
    "offsets cut anew": Planted(Parts(run=OffsetsCutAnew), "invariant 6"),
    "commit log before the marker": Planted(Parts(run=CommitLogBeforeMarker), "invariant 1"),
    "location not brought up": Planted(Parts(run=LocationNotBroughtUp), "invariant"),
    "taken over after reading": Planted(
        Parts(run=TakenOverAfterReading), "invariant 6", {**ZOMBIES, "with_log": True}
    ),
    "commit copied before its state": Planted(Parts(run=CommitCopiedBeforeItsState), "invariant 3"),
    "marker names the last attempt": Planted(
        Parts(run=MarkerNamesTheLastAttempt), "losing attempt", ATTEMPTS
    ),
    "stale local file trusted": Planted(Parts(executor=StaleLocalFileTrusted), "batch", CRASHES),
    "gate missing": Planted(Parts(executor=GateMissing), "invariant 2"),
    "state copied before released": Planted(
        Parts(executor=StateCopiedBeforeReleased), "invariant 2"
    ),
    "only the file itself looked at": Planted(
        Parts(location=OnlyTheFileItselfLookedAt), "invariant 6", ZOMBIES
    ),
    "fence missing": Planted(Parts(log=FenceMissing), "invariant 5"),
    "marker without its offsets": Planted(
        Parts(log=MarkerWithoutItsOffsets), "before its offsets are safe", OFFSETS_IN_MARKER
    ),
    "marker of another start taken": Planted(
        Parts(log=MarkerOfAnotherStartTaken), "not in the log", {**OFFSETS_IN_MARKER, **EARLY}
    ),
    "offsets answered before the sync": Planted(
        Parts(log=OffsetsAnsweredEarly), "invariant 6", {**EARLY, "sink": "foreach"}
    ),
    "offsets ride while state waits for them": Planted(
        Parts(release=OffsetsKeptWhileStateWaits), "stuck", {**OFFSETS_IN_MARKER, "pieces": "large"}
    ),
}
