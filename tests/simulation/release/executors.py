"""Executors of a simulated run: task attempts, the pieces they hold, and the acks they send."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.commit.events import Event, PieceDurable, PieceWritten
from penstock.commit.release import Release
from simulation.release.early_places import Entry, Given
from simulation.release.setup import Cut, Output, State
from simulation.release.shared import Ground
from simulation.release.stores import Piece, Snapshot, load

LANDED_RATE = 0.3
"""How often what was answered early is synced with nothing else to bring a sync."""


@dataclass(eq=False)
class Attempt:
    """One attempt of one task. It goes through its stages, one a step."""

    number: int
    batch: int
    partition: int
    cut: Cut
    previous: str | None
    executor: Executor
    stage: str = "load"
    state: State = field(default_factory=dict)
    output: Output = field(default_factory=dict)
    piece: str = ""
    generation: int = 0


@dataclass
class Held:
    """A piece on the executor's disk, and how much of it is durable."""

    piece: Piece
    generation: int
    copied: int = 0
    copying: tuple[int, Piece] | None = None


class Message(NamedTuple):
    sender: str
    event: Event


class Query:
    """What the driver and the executors of one run of the query share."""

    def __init__(self, ground: Ground, release: Release) -> None:
        self.ground = ground
        self.release = release
        self.instance = 0
        self.batch = 0
        self.ended: str | None = None
        self.attempts: list[Attempt] = []
        self.winners: dict[int, Attempt] = {}
        self.named: dict[tuple[int, int], str] = {}
        self.outbox: list[Message] = []
        self.heard: dict[tuple[str, str], int] = {}
        self.given: dict[Entry, Given] = {}  # what was answered early

    def end(self, reason: str) -> None:
        self.ended = self.ended or reason

    def task_ended(self, attempt: Attempt) -> None:
        """The first attempt of a partition to end wins; the others go on until they are killed."""
        self.attempts.remove(attempt)
        if attempt.batch == self.batch and self.ended is None:
            self.winners.setdefault(attempt.partition, attempt)

    def answered(self, entry: Entry, given: Given | None) -> None:
        """The log has taken an entry of this run; early, it names the start in the marker."""
        if given is not None:
            self.given[entry] = given
            if self.ground.rng.random() < LANDED_RATE:
                self.ground.log.early.sync()

    def find_durable(self, name: str) -> Piece | None:
        """In the location, or in the log as this run wrote it; not before it is synced there."""
        location, log = self.ground.location, self.ground.log
        if (piece := location.pieces.get(name)) is not None:
            return piece
        for entry, piece in log.pieces.items():
            is_synced = entry not in log.early.unsynced
            if entry[0] == self.instance and entry[1] == name and is_synced:
                return piece
        return None


class Executor:
    """Where tasks run. What it holds is gone with it."""

    def __init__(self, run: Query, name: str, host: str) -> None:
        self.run = run
        self.name = name
        self.host = host
        self.held: dict[str, Held] = {}
        self.snapshots: dict[str, Snapshot] = {}

    def advance(self, attempt: Attempt) -> bool:
        """The next stage; False if it has to wait."""
        match attempt.stage:
            case "load":
                return self._load(attempt)
            case "rows":
                return self._rows(attempt)
            case "state":
                self._commit_state(attempt)
                attempt.stage = "sink"
            case "sink":
                self._write(attempt)
                attempt.stage = "end"
            case _:
                return self._end(attempt)
        return True

    def gate(self, attempt: Attempt) -> bool:
        """Released: what the sink shows cannot be cut anew."""
        return attempt.batch <= self.run.release.released

    def find(self, name: str) -> Piece | None:
        """A piece this executor holds, or one that is durable; files of others are never read."""
        if (held := self.held.get(name)) is not None:
            return held.piece
        return self.run.find_durable(name)

    def _load(self, attempt: Attempt) -> bool:
        state = load(attempt.previous, self.find, self.run.ground.location.snapshots)
        if isinstance(state, str):
            self._miss(attempt, state)
            return False
        attempt.state = state
        attempt.stage = "rows"
        return True

    def _miss(self, attempt: Attempt, name: str) -> None:
        """State that is pending is waited for. What is lost, or was durable and is not there (a
        run beside this one goes on with the same location), fails the task, and the query."""
        version, release = int(name.partition("/")[2].partition("_")[0]), self.run.release
        if version <= release.committed or release.is_lost(version, name):
            self.run.attempts.remove(attempt)
            if attempt.batch == self.run.batch:
                self.run.end(f"{name} is nowhere to be found")

    def _rows(self, attempt: Attempt) -> bool:
        setup = self.run.ground.setup
        if setup.sink == "foreach" and not self.gate(attempt):
            return False
        salt = self.run.ground.draw_salt()
        attempt.output = self.run.ground.input.compute(
            attempt.cut, attempt.partition, setup.partitions, attempt.state, salt
        )
        if setup.sink == "foreach":
            self.run.ground.sink.show(attempt.batch, attempt.partition, attempt.output)
        attempt.stage = "state"
        return True

    def _commit_state(self, attempt: Attempt) -> None:
        if not attempt.piece:
            attempt.piece = f"{attempt.partition}/{attempt.batch}"
            if self.run.ground.setup.format == 2:
                attempt.piece += f"_{self.run.instance}.{attempt.number}"
        self.write(attempt)

    def write(self, attempt: Attempt) -> None:
        """The piece is complete here (ack 1); a second write supersedes the first."""
        setup = self.run.ground.setup
        values: State = {key: value for key, (_, value) in attempt.output.items()}
        state = {**attempt.state, **values}
        is_whole = setup.pieces == "snapshot"
        previous, values = (None, state) if is_whole else (attempt.previous, values)
        piece = Piece(attempt.piece, attempt.partition, attempt.batch, previous, values)
        held = self.held.get(piece.name)
        if held is None:
            held = self.held[piece.name] = Held(piece, 0)
        held.piece = piece
        held.generation += 1
        attempt.generation = held.generation
        self.run.ground.disks.setdefault(self.host, {})[piece.name] = piece
        if not is_whole and attempt.batch % setup.snapshot_every == 0:
            self.snapshots[piece.name] = Snapshot(attempt.partition, attempt.batch, state)
        self.send(PieceWritten(attempt.batch, piece.name, self.name, held.generation))

    def send(self, event: Event) -> None:
        self.run.outbox.append(Message(self.name, event))

    def _write(self, attempt: Attempt) -> None:
        if self.run.ground.setup.sink == "log":
            entry = (self.run.instance, attempt.batch, attempt.partition, attempt.number)
            ground = self.run.ground
            given = ground.log.append_rows(entry, attempt.output, is_early=ground.setup.early)
            self.run.answered(entry, given)

    def _end(self, attempt: Attempt) -> bool:
        setup = self.run.ground.setup
        if setup.sink == "file" and not self.gate(attempt):
            return False
        heard = self.run.heard.get((attempt.piece, self.name), 0)
        if setup.told_first and heard < attempt.generation:
            return False
        self.run.task_ended(attempt)
        return True

    def may_copy(self, held: Held) -> bool:
        release, kind = self.run.release, self.run.ground.setup.pieces
        if kind == "snapshot":
            return release.may_show_snapshot(held.piece.version, is_required=True)
        return release.may_make_durable(held.piece.version, is_large=kind == "large")

    def to_copy(self) -> list[Held]:
        return [
            held
            for held in self.held.values()
            if held.copying is not None or (held.copied < held.generation and self.may_copy(held))
        ]

    def copy(self, held: Held) -> None:
        """Starts, or ends, making a write durable (ack 2). One at a time for each piece: an older
        write must not land on a newer one."""
        if held.copying is None:
            held.copying = (held.generation, held.piece)
            return
        generation, piece = held.copying
        held.copying = None
        held.copied = generation
        ground = self.run.ground
        if ground.setup.pieces_in_log:
            entry = (self.run.instance, piece.name, self.name, generation)
            given = ground.log.append_piece(entry, piece, is_early=ground.setup.early)
            self.run.answered(entry, given)
            ground.note("appended", (piece.name, self.name, generation))
        elif ground.setup.pieces == "snapshot":
            self.put_snapshot(piece.name, Snapshot(piece.partition, piece.version, piece.values))
        else:
            ground.location.put_piece(piece)
        self.send(PieceDurable(piece.version, piece.name, self.name, generation))

    def to_show(self) -> list[str]:
        """Snapshots the location may have now. Of attempts that lost nobody wants one."""
        return [
            name
            for name, snapshot in self.snapshots.items()
            if self.run.release.may_show_snapshot(snapshot.version, is_required=False)
        ]

    def show(self, name: str) -> None:
        snapshot = self.snapshots.pop(name)
        if self.run.named.get((snapshot.version, snapshot.partition)) == name:
            self.put_snapshot(name, snapshot)

    def put_snapshot(self, name: str, snapshot: Snapshot) -> None:
        ground = self.run.ground
        ground.location.put_snapshot(name, snapshot)
        ground.location.clean(snapshot.partition, ground.setup.snapshots_kept)
