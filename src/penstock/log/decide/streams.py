"""Decide on the life of streams: making, altering, deleting and sweeping them."""

from __future__ import annotations

from itertools import islice

import msgspec
import pyarrow as pa

from penstock.errors import BadCall
from penstock.log.decide.consumers import holders, outputs_of
from penstock.log.decide.need import end_of, need_stream
from penstock.log.operations import (
    AlterStream,
    CreateStream,
    DeleteStream,
    StreamMade,
    SweepStream,
    Trimmed,
)
from penstock.log.plan import Plan, Removal
from penstock.log.rules import ALTERATIONS_COUNTED, SCHEMAS_READ
from penstock.log.state import STREAM_ID_MAX, DeletedStream, StreamRecord, stream_point
from penstock.log.view import View
from penstock.model.ids import SUBSTREAMS_MAX, Lsn, Substream, substream_tag
from penstock.model.schema import check_added, to_ddl


def decide_stream(operation: CreateStream, view: View) -> Plan:
    """A new stream, or the one that is there if it is the same."""
    stream = view.stream(operation.name)
    if stream is None:
        substreams = 1 if operation.substreams is None else operation.substreams
        if not 1 <= substreams <= SUBSTREAMS_MAX:
            raise BadCall(
                f"a stream has 1 to {SUBSTREAMS_MAX} substreams, not {substreams}",
                code="bad_request",
            )
        made = StreamRecord(
            view.next_stream_id,
            operation.name,
            operation.schema,
            substreams,
            operation.key or (),
            began=view.trimmed(stream_point(operation.name)),
        )
        return Plan(StreamMade(made, created=True), stream=made)
    differs = []
    # A writer from before a column was added goes on as it was.
    known = (stream.schema, *stream.versions)
    if not any(_is_same_schema(operation.schema, schema, view) for schema in known):
        differs.append(f"its columns are {_ddl(stream.schema)}, not {_ddl(operation.schema)}")
    if operation.substreams is not None and operation.substreams != stream.substreams:
        differs.append(f"it has {stream.substreams} substreams, not {operation.substreams}")
    if operation.key is not None and operation.key != stream.key:
        differs.append(f"its key is {list(stream.key)}, not {list(operation.key)}")
    if differs:
        raise BadCall(
            f"the stream {operation.name!r} is there and differs: {'; '.join(differs)}; "
            "use it as it is, alter it first, or choose another name",
            code="stream_differs",
            status=409,
        )
    return Plan(StreamMade(stream, created=False))


def decide_alter(operation: AlterStream, view: View) -> Plan:
    """The stream with what was asked for; asking for what it has changes nothing."""
    stream = need_stream(view, operation.name)
    if operation.stream_id not in (None, stream.id):
        raise _conflict(stream, "is another one than the change was meant for")
    if operation.revision in (None, stream.revision):
        altered = _altered(stream, operation, view)
    elif not _is_as_asked(stream, operation, view):
        raise _conflict(stream, "was altered since the change was thought of")
    else:
        altered = stream
    if altered == stream:
        return Plan(stream)
    if view.rules.version >= ALTERATIONS_COUNTED:
        altered = msgspec.structs.replace(altered, revision=stream.revision + 1)
    return Plan(altered, stream=altered)


def _altered(stream: StreamRecord, operation: AlterStream, view: View) -> StreamRecord:
    altered = stream
    if operation.schema is not None and not _is_same_schema(operation.schema, stream.schema, view):
        check_added(_schema(stream.schema), _schema(operation.schema), stream.name)
        altered = msgspec.structs.replace(
            altered, schema=operation.schema, versions=(*stream.versions, stream.schema)
        )
    if operation.substreams is not None and operation.substreams != stream.substreams:
        _check_growth(stream, operation.substreams)
        altered = msgspec.structs.replace(
            altered, substreams=operation.substreams, turns=(*stream.turns, end_of(view, stream))
        )
    if operation.retention is not None:
        altered = msgspec.structs.replace(altered, retention=operation.retention)
    return altered


def _is_as_asked(stream: StreamRecord, operation: AlterStream, view: View) -> bool:
    try:
        return _altered(stream, operation, view) == stream
    except BadCall:
        return False


def _conflict(stream: StreamRecord, fact: str) -> BadCall:
    return BadCall(
        f"the stream {stream.name!r} {fact}; look at it, and ask again if it is still wanted",
        code="conflict",
        status=409,
    )


def _is_same_schema(asked: bytes, known: bytes, view: View) -> bool:
    """The same columns may be other bytes: those of another version of Arrow, or with metadata."""
    if asked == known or view.rules.version < SCHEMAS_READ:
        return asked == known
    return bool(_schema(asked).equals(_schema(known)))


def _ddl(schema: bytes) -> str:
    return to_ddl(_schema(schema))


def _schema(message: bytes) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(message))


def _check_growth(stream: StreamRecord, substreams: int) -> None:
    if not stream.substreams < substreams <= SUBSTREAMS_MAX:
        raise BadCall(
            f"the stream {stream.name!r} has {stream.substreams} substreams and can have more, up "
            f"to {SUBSTREAMS_MAX}, but not {substreams}: rows stay where they are, and with fewer "
            "some would be in none; make another stream for fewer",
            code="would_lose_data",
            status=409,
        )


def decide_delete_stream(operation: DeleteStream, view: View) -> Plan:
    """The stream is gone at once; its entries are swept afterwards, a bounded number at a time.

    A stream made later under the name begins where this one ended, so that a reader of the old one
    is told that its rows are gone instead of being given others. One that is named by its id and is
    gone already stays so, whatever has its name meanwhile.
    """
    if operation.stream_id is not None and operation.stream_id < view.next_stream_id:
        current = view.stream(operation.name)
        if current is None or current.id != operation.stream_id:
            return Plan(None)
    stream = need_stream(view, operation.name)
    users = _users(stream, view)
    if users and not operation.force:
        raise BadCall(
            f"the stream {stream.name!r} is in use by {', '.join(users)}; stop and forget them "
            "first, or force it: whoever reads it then gets an error",
            code="stream_in_use",
            status=409,
        )
    tags = [substream_tag(stream.name, Substream(each)) for each in range(stream.substreams)]
    tails = [(tag, lsn) for tag in tags if (lsn := view.tail(tag)) is not None]
    until = max(end_of(view, stream), *(lsn for _, lsn in tails), Lsn(0))
    consumers = tuple(
        (each.reader, each.name, each.stream)
        for each in view.consumers()
        if each.stream == stream.name
    )
    removal = Removal(
        points=((stream_point(stream.name), until), *tails),
        consumers=consumers,
        stream=stream.name,
    )
    left = DeletedStream(stream.id, stream.name, stream.substreams, until)
    return Plan(stream, removal=removal, deleted=left)


def _users(stream: StreamRecord, view: View) -> list[str]:
    readers = {f"the {each.reader} {each.name!r}" for each in holders(view, stream.name)}
    writers = {
        f"the query {each.query!r}, which writes to it"
        for each in view.queries()
        if each.marker is not None
        and each.marker.commit is not None
        and stream.name in outputs_of(view, each.query)
    }
    return sorted(readers | writers)


def decide_sweep(operation: SweepStream, view: View) -> Plan:
    """Entries that a deleted stream has left, oldest first; the last step forgets the stream."""
    has_number = 0 <= operation.stream_id <= STREAM_ID_MAX
    left = view.deleted(operation.stream_id) if has_number else None
    if left is None:
        return Plan(Trimmed(0))
    stream = StreamRecord(left.id, left.name, b"", left.substreams, ())
    commits = list(islice(view.commits(stream, 0, left.until), operation.entries_max))
    tags = [
        (tag, lsn)
        for each in range(left.substreams)
        for tag in [substream_tag(left.name, Substream(each))]
        for lsn in islice(view.tagged(tag), operation.entries_max)
        if lsn <= left.until
    ][: operation.entries_max]
    removal = Removal(
        tags=tuple(tags),
        commits=tuple((left.id, each.lsn) for each in commits),
        visible=tuple((left.id, k, each.lsn) for each in commits for k in each.substreams),
        producers=tuple((left.id, name) for name in view.producers_until(stream, left.until)),
        swept=None if tags or commits else left.id,
    )
    return Plan(Trimmed(left.until, len(tags) + len(commits)), removal=removal)
