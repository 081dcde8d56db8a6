"""The marker: the one entry that makes a batch visible, and what it says.

`Stamp` names who appended an entry, `Write` the entries of one winning task attempt, `FileRef` a
file of the checkpoint, `Snapshot` the state of one store, `Marker` the whole batch. Stored as JSON,
because a person debugging a stuck query reads it.
"""

from __future__ import annotations

import base64

import msgspec

from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName


class Stamp(msgspec.Struct, frozen=True):
    """The writer of a pending entry. Entries whose stamp no marker names stay invisible."""

    query: QueryId
    instance: Instance
    batch: BatchId
    partition: int
    attempt: int


class Write(msgspec.Struct, frozen=True):
    """The entries that one winning task attempt appended to one stream, in the order of appends."""

    stream: StreamName
    partition: int
    attempt: int
    entries: tuple[Lsn, ...]


class FileRef(msgspec.Struct, frozen=True):
    """A file of the checkpoint and the entry that holds its bytes."""

    path: FilePath
    entry: Lsn


class SnapshotFile(msgspec.Struct, frozen=True):
    """A file of a snapshot: the entries that hold its parts, in order, and what they come to."""

    path: FilePath
    entries: tuple[Lsn, ...]
    file_bytes: int
    crc32: int


class Snapshot(msgspec.Struct, frozen=True):
    """One state store as it was after a batch. Files of the snapshot before it may be among its
    own: they never change."""

    folder: str
    batch: BatchId
    files: tuple[SnapshotFile, ...]

    @property
    def entries(self) -> tuple[Lsn, ...]:
        return tuple(lsn for file in self.files for lsn in file.entries)


class GivenPlaces(msgspec.Struct, frozen=True):
    """Places that one start of the log gave out before they were synced, up to `last`."""

    start: int
    last: Lsn


class Marker(msgspec.Struct, frozen=True):
    """Commits batch `batch` of `query`: names exactly the entries that become visible.

    `commit` is the base64 of the bytes Spark is about to write to `commits/<batch>`, or None for
    a batch write, which has no checkpoint. `positions` is how far each input had been read.
    `files` are the batch's checkpoint files that lie in the log: with `commit` they bring a
    location that has the batch before up to this one. `snapshots` are those of this batch or an
    earlier one that came into the log since the last marker; left out, the log is to keep none.
    `offsets` is the base64 of `offsets/<batch>`, where neither a file nor the location has it.
    `starts` are those that gave places named here before these were synced.
    """

    query: QueryId
    instance: Instance
    batch: BatchId
    writes: tuple[Write, ...]
    commit: str | None = None
    positions: dict[str, Lsn] = {}
    mode: str = "append"
    files: tuple[FileRef, ...] = ()
    snapshots: tuple[Snapshot, ...] | msgspec.UnsetType = msgspec.UNSET
    offsets: str | msgspec.UnsetType = msgspec.UNSET
    starts: tuple[GivenPlaces, ...] | msgspec.UnsetType = msgspec.UNSET


class MarkerRef(msgspec.Struct, frozen=True):
    """The last marker of a query, as far as a new instance needs it."""

    lsn: Lsn
    batch: BatchId
    instance: Instance
    commit: str | None


class TakeOver(msgspec.Struct, frozen=True):
    """A new run of a query; from here on only `instance` may mark."""

    query: QueryId
    instance: Instance
    run: str


def encode_commit(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decode_commit(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), validate=True)
