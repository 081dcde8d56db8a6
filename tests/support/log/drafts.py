"""Building blocks for tests of the log: drafts with a known payload."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import xxhash

from penstock.log.operations import (
    AppendFiles,
    AppendPending,
    AppendRows,
    CreateStream,
    Draft,
    FileDraft,
    Mark,
    TakeQuery,
)
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import FileRef, GivenPlaces, Marker, Stamp, Write
from penstock.model.schema import schema_of

SCHEMA = schema_of("k bigint")
SCHEMA_BYTES: bytes = SCHEMA.serialize().to_pybytes()


def rows_payload(*values: int) -> bytes:
    batch = pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], schema=SCHEMA)
    return bytes(batch.serialize().to_pybytes())


def values_of(payload: bytes | memoryview) -> list[int]:
    batch = pa.ipc.read_record_batch(pa.py_buffer(payload), SCHEMA)
    return [int(value) for value in batch.column(0).to_pylist()]


def draft(substream: int, *values: int) -> Draft:
    payload = rows_payload(*values)
    return Draft(Substream(substream), payload, len(values), xxhash.xxh3_64_intdigest(payload))


def make(name: str = "s", substreams: int = 2) -> CreateStream:
    return CreateStream(StreamName(name), SCHEMA_BYTES, substreams, None)


def rows(
    *drafts: Draft, stream: str = "s", producer: str | None = None, sequence: int | None = None
) -> AppendRows:
    return AppendRows(StreamName(stream), drafts, producer, sequence)


def stamp(query: str = "q", instance: int = 1, batch: int = 0, attempt: int = 0) -> Stamp:
    return Stamp(QueryId(query), Instance(instance), BatchId(batch), 0, attempt)


def pending(*drafts: Draft, stream: str = "s", by: Stamp | None = None) -> AppendPending:
    return AppendPending(StreamName(stream), by or stamp(), drafts)


def files(*paths: str, query: str = "q", instance: int = 1, batch: int = 0) -> AppendFiles:
    """Files whose bytes are their path."""
    drafts = (
        FileDraft(FilePath(path), path.encode(), xxhash.xxh3_64_intdigest(path.encode()))
        for path in paths
    )
    return AppendFiles(QueryId(query), Instance(instance), BatchId(batch), tuple(drafts))


def take(query: str = "q", run: str = "r1", name: str | None = None) -> TakeQuery:
    return TakeQuery(QueryId(query), run, name)


def mark(
    *entries: int,
    query: str = "q",
    instance: int = 1,
    batch: int = 0,
    stream: str = "s",
    attempt: int = 0,
    files: dict[str, int] | None = None,
    starts: dict[int, int] | None = None,
) -> Mark:
    lsns = tuple(Lsn(entry) for entry in entries)
    writes = (Write(StreamName(stream), 0, attempt, lsns),) if entries else ()
    refs = tuple(FileRef(FilePath(path), Lsn(lsn)) for path, lsn in (files or {}).items())
    given = tuple(GivenPlaces(start, Lsn(last)) for start, last in (starts or {}).items())
    marker = Marker(
        QueryId(query), Instance(instance), BatchId(batch), writes, commit="e30=", files=refs,
        starts=given or msgspec.UNSET,
    )  # fmt: skip
    return Mark(marker)
