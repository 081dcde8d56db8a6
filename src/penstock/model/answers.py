"""Answers of the HTTP interface, one struct each: a server encodes them, a client decodes.

The order of fields is that of the JSON. Fields that are added get a default, so that a client
understands servers that do not send them.
"""

from __future__ import annotations

import msgspec

from penstock.model.device_plans import BatchPlan
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, StreamName
from penstock.model.marker import FileRef, SnapshotFile, decode_commit

# The server, and what it knows of streams


class Health(msgspec.Struct, frozen=True):
    """A server that answers."""

    version: str
    protocol: int


class ServerDescription(msgspec.Struct, frozen=True):
    """A server: where its data lie, what time it has, how far its log goes."""

    version: str
    protocol: int
    data: str
    pid: int
    started_at_ms: int
    now_ms: int
    consumers_away: int
    latest: int


class StreamDescription(msgspec.Struct, frozen=True):
    """A stream; positions and counts are of the moment of asking. `schema` is base64. `id` tells it
    from another one of its name, `revision` from itself before it was altered."""

    name: str
    ddl: str
    schema: str
    substreams: int
    key: tuple[str, ...]
    earliest: int
    latest: int
    rows: int
    bytes: int
    version: int = 0
    first_columns: int | None = None
    age_ms_max: int | None = None
    bytes_max: int | None = None
    id: int = 0
    revision: int = 0


class StreamList(msgspec.Struct, frozen=True):
    """The streams of a log, by name."""

    streams: tuple[StreamDescription, ...]


class Position(msgspec.Struct, frozen=True):
    """A position in a stream."""

    position: int


# Appends, and how far to read


class Appended(msgspec.Struct, frozen=True):
    """Rows are durable and visible up to `position`, the commit that made them so; `duplicate`:
    they were there already."""

    position: Lsn
    rows: int
    entries: tuple[Lsn, ...] = ()
    duplicate: bool = False


class EntryPlace(msgspec.Struct, frozen=True):
    """The place of one entry that was appended."""

    lsn: Lsn


class EntryPlaces(msgspec.Struct, frozen=True, omit_defaults=True):
    """The places of entries that were appended, in the order they were sent; `files` are those of
    checkpoint files that came with rows. `start`: they were answered before they were synced,
    by this start of the log; a marker that names them names it, too."""

    entries: tuple[Lsn, ...]
    files: tuple[Lsn, ...] = ()
    start: int | None = None


class InlinePage(msgspec.Struct, frozen=True):
    """The rows of one substream in an answer, as an Arrow IPC stream; base64 in the JSON."""

    substream: int
    rows: bytes


class Admission(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reach of the next batch in a stream; `end` is where it is if there is nothing yet.

    `pages`: all rows of the batch, by the substreams that have any; null: they are to be fetched.
    """

    end: Lsn
    latest: Lsn
    substreams: int
    pages: tuple[InlinePage, ...] | None = None


class AdmittedInput(msgspec.Struct, frozen=True, omit_defaults=True):
    """One source's part of an answer: `end`, `latest`, `substreams` and `pages` for a stream of the
    log; for a source outside it `take`: "all", "nothing", or so many of what it cuts by."""

    source: int
    end: Lsn | None = None
    latest: Lsn | None = None
    substreams: int | None = None
    take: str | int | None = None
    pages: tuple[InlinePage, ...] | None = None


class BatchAdmission(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the next batch of a query begins now, and with what.

    `server` changes when the server was started anew, and with it all it knew of finished batches.
    `left_ms` is the time left to the deadline of the oldest row in the batch. `plan` is there if
    the question had a pipeline and the batch was cut.
    """

    server: str
    is_cut: bool
    cut: int | None
    inputs: tuple[AdmittedInput, ...]
    left_ms: float | None
    weight: float
    predicted_ms: float | None
    reason: str
    policy: str
    deadline_ms: float | None
    plan: BatchPlan | None = None


# Recovery of a query


class MarkedBatch(msgspec.Struct, frozen=True):
    """A marker, as far as it brings a checkpoint location up to its batch."""

    lsn: Lsn
    batch: BatchId
    instance: Instance
    commit: str | None
    files: tuple[FileRef, ...]
    offsets: str | None = None

    @property
    def commit_bytes(self) -> bytes | None:
        """The content of `commits/<batch>`; None for a batch write, which has no checkpoint."""
        return None if self.commit is None else decode_commit(self.commit)

    @property
    def offsets_bytes(self) -> bytes | None:
        """The content of `offsets/<batch>`; None where a file has it, or the location."""
        return None if self.offsets is None else decode_commit(self.offsets)


class RecordedOffsets(msgspec.Struct, frozen=True):
    """The entry with the offsets of the first batch that has no marker: it must run with these."""

    batch: BatchId
    entry: Lsn
    instance: Instance


class Checkpoint(msgspec.Struct, frozen=True):
    """The checkpoint of a query as it lies in the log; `more`: markers follow the last one."""

    markers: tuple[MarkedBatch, ...]
    more: bool
    offsets: RecordedOffsets | None


class ChangeLog(msgspec.Struct, frozen=True):
    """A change log of a batch after the snapshot, or the checksum file of one."""

    path: FilePath
    entry: Lsn
    batch: BatchId


class StoredState(msgspec.Struct, frozen=True):
    """A state store in the log: its newest snapshot, if there is one, and all that follows it in
    order."""

    folder: str
    needs_from: BatchId
    snapshot: tuple[SnapshotFile, ...]
    changes: tuple[ChangeLog, ...]


class StateInLog(msgspec.Struct, frozen=True):
    """The state of a query as it lies in the log, in the order of the stores' folders; `more`:
    stores follow the last one."""

    stores: tuple[StoredState, ...]
    more: bool


# Consumers, records, trims


class ConsumerDescription(msgspec.Struct, frozen=True):
    """A consumer in one stream: how far it is, and since when it has stayed away, if it has."""

    reader: str
    name: str
    stream: StreamName
    position: Lsn
    rows_behind: int
    heard_at_ms: int
    is_away: bool
    away_since_ms: int | None
    is_trimmed: bool


class ConsumerList(msgspec.Struct, frozen=True):
    """Groups and queries, each once for every stream it reads."""

    consumers: tuple[ConsumerDescription, ...]


class MovedPositions(msgspec.Struct, frozen=True):
    """The positions of a consumer after a move, by stream."""

    positions: dict[str, Lsn]


class ForgottenStreams(msgspec.Struct, frozen=True):
    """The streams that are no longer held for a consumer."""

    forgotten: tuple[StreamName, ...]


class TrimmedRows(msgspec.Struct, frozen=True):
    """Rows of a stream that are gone, up to `until`, and the entries and bytes that held them."""

    until: Lsn
    entries: int
    payload_bytes: int


class RecordLine(msgspec.Struct, frozen=True):
    """A record as it was appended; `payload` is base64 in the JSON."""

    lsn: Lsn
    producer: str | None
    seq: int | None
    payload: bytes


class RecordPage(msgspec.Struct, frozen=True):
    """Records of a tag in order; `more`: others may follow the last one."""

    records: tuple[RecordLine, ...]
    more: bool


class TrimmedRecords(msgspec.Struct, frozen=True):
    """Records of a tag that are gone, up to `until`; `more`: there were too many for one call."""

    until: Lsn
    entries: int
    more: bool


class Deleted(msgspec.Struct, frozen=True):
    """The name of the stream or query that is gone."""

    deleted: str


class Collected(msgspec.Struct, frozen=True):
    """Entries that nobody needed and that were trimmed."""

    entries: int
    payload_bytes: int
