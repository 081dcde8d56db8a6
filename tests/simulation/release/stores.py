"""What survives in a simulated world: the checkpoint location, the shared log, the sink.

Each writes what happens to it into one journal, from which the checks and the story are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from simulation.release.early_places import EarlyPlaces, Entry, Given
from simulation.release.setup import Cut, Output, State, Value

Journal = list[tuple[str, Any]]


class Refused(Exception):
    """The store will not do it, however often it is asked."""


class Piece(NamedTuple):
    """The changes of one partition in one version, on top of the piece named `previous`."""

    name: str
    partition: int
    version: int
    previous: str | None
    values: State


class Commit(NamedTuple):
    """`commits/<batch>`: the piece of every partition."""

    batch: int
    pieces: tuple[str, ...]


PieceEntry = tuple[int, str, str, int]  # instance, piece, writer, generation
RowsEntry = tuple[int, int, int, int]  # instance, batch, partition, attempt


class Marker(NamedTuple):
    batch: int
    instance: int
    cut: Cut
    pieces: tuple[PieceEntry, ...]
    outputs: tuple[RowsEntry, ...]
    commit: Commit
    starts: tuple[Given, ...] = ()  # the last place of each start that answered early


@dataclass
class Snapshot:
    partition: int
    version: int
    state: State


def load(
    name: str | None,
    find: Callable[[str], Piece | None],
    snapshots: dict[str, Snapshot],
) -> dict[int, Value] | str:
    """The state after the named piece, or the name of the first piece that is missing."""
    changes: list[State] = []
    while name is not None:
        if (snapshot := snapshots.get(name)) is not None:
            changes.append(snapshot.state)
            break
        if (piece := find(name)) is None:
            return name
        changes.append(piece.values)
        name = piece.previous
    state: dict[int, Value] = {}
    for change in reversed(changes):
        state.update(change)
    return state


@dataclass
class Location:
    """The checkpoint location, as plain Spark sees it."""

    journal: Journal
    offsets: dict[int, Cut] = field(default_factory=dict)
    commits: dict[int, Commit] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)
    snapshots: dict[str, Snapshot] = field(default_factory=dict)

    def last_commit(self) -> int:
        return max(self.commits, default=-1)

    def check_new(self, batch: int, present: Collection[int]) -> None:
        """A file that a later one makes obsolete may have been there and be deleted by now: another
        run goes on, and without a log this is all there is to know it by."""
        if batch <= max(present, default=-1):
            raise Refused(f"batch {max(present)} is there, and this is {batch}")

    def create_offsets(self, batch: int, cut: Cut) -> None:
        self.check_new(batch, self.offsets)
        self.offsets[batch] = cut
        self.journal.append(("offsets", (batch, cut)))

    def create_commit(self, commit: Commit) -> None:
        self.check_new(commit.batch, self.commits)
        self.commits[commit.batch] = commit
        self.journal.append(("commit", commit))

    def put_piece(self, piece: Piece) -> None:
        self.pieces[piece.name] = piece
        self.journal.append(("piece", piece))

    def put_snapshot(self, name: str, snapshot: Snapshot) -> None:
        self.snapshots[name] = snapshot
        self.journal.append(("snapshot", (name, snapshot.version)))

    def delete(self, path: str) -> None:
        kind, _, batch = path.partition("/")
        files: dict[int, Any] = self.offsets if kind == "offsets" else self.commits
        if files.pop(int(batch), None) is not None:
            self.journal.append(("deleted", path))

    def clean(self, partition: int, retain: int) -> None:
        """Maintenance, as Spark does it: what is older than the snapshot kept is not needed."""
        stored: list[Piece | Snapshot] = [*self.pieces.values(), *self.snapshots.values()]
        latest = max((item.version for item in stored if item.partition == partition), default=-1)
        kept = max(
            (
                snapshot.version
                for snapshot in self.snapshots.values()
                if snapshot.partition == partition and snapshot.version <= latest - retain
            ),
            default=-1,
        )
        files: tuple[dict[str, Any], ...] = (self.pieces, self.snapshots)
        for kind in files:
            old = [n for n, o in kind.items() if o.partition == partition and o.version < kept]
            for name in old:
                del kind[name]
                self.journal.append(("deleted", f"state {name}"))


@dataclass
class Log:
    """The shared log. Its fence and its appends are one atomic step.

    What is appended early is synced with the next operation that is not, or lost before it.
    """

    journal: Journal
    instance: int = 0
    offsets: dict[int, Cut] = field(default_factory=dict)
    pieces: dict[PieceEntry, Piece] = field(default_factory=dict)
    rows: dict[RowsEntry, Output] = field(default_factory=dict)
    markers: dict[int, Marker] = field(default_factory=dict)
    early: EarlyPlaces = field(default_factory=EarlyPlaces)

    def last_marker(self) -> int:
        return max(self.markers, default=-1)

    def take_over(self) -> int:
        self.instance += 1
        self.early.sync()
        self.journal.append(("taken over", self.instance))
        return self.instance

    def check_fence(self, instance: int) -> None:
        if instance != self.instance:
            raise Refused(f"instance {instance} was taken over by {self.instance}")

    def append_piece(self, entry: PieceEntry, piece: Piece, *, is_early: bool) -> Given | None:
        self.pieces[entry] = piece
        return self._answer(entry, is_early=is_early)

    def append_rows(self, entry: RowsEntry, output: Output, *, is_early: bool) -> Given | None:
        self.rows[entry] = output
        return self._answer(entry, is_early=is_early)

    def _answer(self, entry: Entry, *, is_early: bool) -> Given | None:
        if is_early:
            return self.early.give(entry)
        self.early.sync()
        return None

    def crash(self) -> None:
        for entry in sorted(self.early.crash(), key=str):
            self.lose(entry)
            self.journal.append(("lost", entry))

    def lose(self, entry: Entry) -> None:
        self.pieces.pop(entry, None)
        self.rows.pop(entry, None)

    def check_starts(self, marker: Marker) -> None:
        for start, last in marker.starts:
            if last >= self.early.below.get(start, 0):
                raise Refused(f"start {start} has lost what it put at {last}")

    def put_offsets(self, instance: int, batch: int, cut: Cut) -> None:
        """The last one counts: that there is one only is not the log's doing."""
        self.check_fence(instance)
        self.early.sync()
        self.offsets[batch] = cut
        self.journal.append(("offsets", (batch, cut)))

    def append_marker(self, marker: Marker, *, has_offsets: bool) -> None:
        self.check_fence(marker.instance)
        if marker.batch <= self.last_marker():
            raise Refused(f"batch {marker.batch} is marked")
        self.check_starts(marker)
        self.early.sync()
        if has_offsets:
            self.journal.append(("offsets", (marker.batch, marker.cut)))
        self.markers[marker.batch] = marker
        self.journal.append(("marker", marker))

    def trim(self, batch: int) -> None:
        """Forget what is in the location up to the batch; what was shown stays."""
        for old in [number for number in self.offsets if number <= batch]:
            del self.offsets[old]
        for entry in [key for key, piece in self.pieces.items() if piece.version <= batch]:
            del self.pieces[entry]


@dataclass
class Sink:
    """A sink outside the log: what its readers see, by batch and partition."""

    journal: Journal
    shown: dict[tuple[int, int], Output] = field(default_factory=dict)

    def show(self, batch: int, partition: int, output: Output) -> None:
        self.shown[batch, partition] = output
        self.journal.append(("shown", (batch, partition, output)))

    def has(self, batch: int) -> bool:
        return any(number == batch for number, _ in self.shown)
