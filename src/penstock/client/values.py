"""What the client gives back."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pyarrow as pa

from penstock.model.ids import BatchId, FilePath, Instance, Lsn
from penstock.model.marker import FileRef, SnapshotFile, decode_commit


class Stream(NamedTuple):
    """A stream as the server describes it; positions and counts are of the moment of asking.

    `version` counts the times columns were added. `age_ms_max` and `bytes_max` are how long and how
    many of its rows are kept while nobody is registered to read it; None: for ever, all.
    """

    name: str
    schema: pa.Schema
    ddl: str
    substreams: int
    key: tuple[str, ...]
    earliest: int
    latest: int
    rows: int
    bytes: int
    version: int = 0
    age_ms_max: int | None = None
    bytes_max: int | None = None


class Appended(msgspec.Struct, frozen=True):
    """Rows are durable and visible up to `position`; `duplicate`: they were there already."""

    position: int
    rows: int
    entries: tuple[int, ...] = ()
    duplicate: bool = False


class Followed(NamedTuple):
    """Rows in commit order, and where to go on once they are dealt with."""

    rows: pa.Table
    position: int


class MarkedBatch(msgspec.Struct, frozen=True):
    """A marker, as far as it brings a checkpoint location up to its batch."""

    lsn: Lsn
    batch: BatchId
    instance: Instance
    commit: str | None
    files: tuple[FileRef, ...]

    @property
    def commit_bytes(self) -> bytes | None:
        """The content of `commits/<batch>`; None for a batch write, which has no checkpoint."""
        return None if self.commit is None else decode_commit(self.commit)


class RecordedOffsets(msgspec.Struct, frozen=True):
    """The entry with the offsets of the first batch that has no marker."""

    batch: BatchId
    entry: Lsn
    instance: Instance


class Checkpoint(msgspec.Struct, frozen=True):
    """The checkpoint of a query as it lies in the log; `more`: markers follow the last one."""

    markers: tuple[MarkedBatch, ...]
    more: bool
    offsets: RecordedOffsets | None


class ChangeLog(msgspec.Struct, frozen=True):
    """A change log of a batch, or the checksum file of one, and the entry that holds it."""

    path: FilePath
    entry: Lsn
    batch: BatchId


class StoredState(msgspec.Struct, frozen=True):
    """A state store in the log: its newest snapshot, if there is one, and all that follows it."""

    folder: str
    needs_from: BatchId
    snapshot: tuple[SnapshotFile, ...]
    changes: tuple[ChangeLog, ...]


class StateInLog(msgspec.Struct, frozen=True):
    """The state of a query as it lies in the log; `more`: stores follow the last one."""

    stores: tuple[StoredState, ...]
    more: bool
