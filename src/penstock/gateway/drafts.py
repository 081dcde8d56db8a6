"""Request bodies to drafts of entries: rows routed to substreams and cut to size, files divided,
all of them serialised and summed. Runs beside the event loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import pyarrow as pa
import xxhash

from penstock.errors import BadCall
from penstock.gateway import decode
from penstock.gateway.parse import bad_request
from penstock.log.operations import Draft, FileDraft, Shape
from penstock.log.reading.schemas import StreamSchemas
from penstock.log.state import StreamRecord
from penstock.model.ids import FilePath, Substream
from penstock.model.routing import split
from penstock.model.schema import fit, same_shape, to_ddl


class Bounds(NamedTuple):
    """Bytes that one entry may have, and those that the rows of a request may take unpacked."""

    entry_bytes_max: int
    rows_bytes_max: int


def entry_too_large(size: int, bound: int, subject: str) -> BadCall:
    return BadCall(
        f"{subject} takes {size} bytes as an entry, and an entry has at most {bound}; send less at "
        "once, or raise entry_bytes_max, and max_payload of the "
        "servers where the log is in JetStream",
        code="entry_too_large",
        status=413,
    )


def shape_of(stream: StreamRecord, routed_by: int | None) -> Shape:
    """The shape of the stream that rows were prepared for; `routed_by` as many substreams, if by
    key."""
    return Shape(stream.id, len(stream.versions), routed_by)


def row_drafts(
    body: bytes,
    content_type: str,
    schemas: StreamSchemas,
    stream: StreamRecord,
    substream: int | None,
    key: Sequence[str],
    bounds: Bounds,
) -> tuple[Draft, ...]:
    """The rows of a producer: all in one substream if it is given, else divided by key."""
    rows = decode.rows_from(
        body, content_type, schemas.current(stream), schemas.first(stream), bounds.rows_bytes_max
    )
    if rows.num_rows == 0:
        return ()
    if substream is not None:
        routed = [(Substream(substream), rows)]
    else:
        routed = split(rows, key, stream.substreams)
    return tuple(
        draft for place, part in routed for draft in cut_rows(place, part, bounds.entry_bytes_max)
    )


def cut_rows(substream: Substream, rows: pa.RecordBatch, bytes_max: int) -> list[Draft]:
    """The rows as entries of at most `bytes_max`, in order; halved until they are."""
    if rows.num_rows > 1 and rows.nbytes > 2 * bytes_max:
        payload = None
    else:
        payload = rows.serialize().to_pybytes()
        if len(payload) <= bytes_max:
            return [_draft(substream, rows, payload)]
    if rows.num_rows <= 1:
        raise entry_too_large(len(payload or b""), bytes_max, "a row")
    half = rows.num_rows // 2
    return [
        *cut_rows(substream, rows.slice(0, half), bytes_max),
        *cut_rows(substream, rows.slice(half), bytes_max),
    ]


def _draft(substream: Substream, rows: pa.RecordBatch, payload: bytes) -> Draft:
    return Draft(substream, payload, rows.num_rows, xxhash.xxh3_64_intdigest(payload))


def entry_drafts(
    body: bytes,
    schemas: StreamSchemas,
    stream: StreamRecord,
    substreams: Sequence[Substream],
    bounds: Bounds,
) -> tuple[Draft, ...]:
    """The record batches of a task, each for the substream named at its place and cut to size."""
    schema = schemas.current(stream)
    sent, batches = decode.arrow_batches(body, schema, bounds.rows_bytes_max)
    versions = range(len(stream.versions) + 1)
    if not any(same_shape(sent, schemas.version(stream, version)) for version in versions):
        raise BadCall(
            f"the rows are {', '.join(f'{f.name} {f.type}' for f in sent)}, and the stream "
            f"{stream.name!r} is {to_ddl(schema)}; send exactly these columns in this order",
            code="rows_do_not_fit",
        )
    if len(batches) != len(substreams):
        raise bad_request(
            f"the body has {len(batches)} record batches and substreams names {len(substreams)}; "
            "name one for each"
        )
    return tuple(
        draft
        for substream, batch in zip(substreams, batches, strict=True)
        for draft in cut_rows(
            substream, fit(batch, schema, schemas.first(stream)), bounds.entry_bytes_max
        )
    )


def file_drafts(
    body: bytes, paths: Sequence[FilePath], sizes: Sequence[int], bytes_max: int
) -> tuple[FileDraft, ...]:
    """The files of a body, which has them one after the other."""
    if sum(sizes) != len(body):
        raise bad_request(
            f"the sizes add up to {sum(sizes)} bytes and the body has {len(body)}; send the files "
            "one after the other, with nothing between them"
        )
    ends = pairwise(accumulate(sizes, initial=0))
    drafts = []
    for path, (start, end) in zip(paths, ends, strict=True):
        if end - start > bytes_max:
            raise entry_too_large(end - start, bytes_max, f"the file {path}")
        payload = body[start:end]
        drafts.append(FileDraft(path, payload, xxhash.xxh3_64_intdigest(payload)))
    return tuple(drafts)
