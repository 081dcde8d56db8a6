"""Decide on the life of streams and queries: altering, deleting, resetting them."""

from __future__ import annotations

from itertools import islice

import msgspec
import pyarrow as pa

from penstock.errors import BadCall
from penstock.log.contract import QueryRecord, StreamRecord, Taken, TakeQuery
from penstock.log.decide.consumers import holders, outputs_of
from penstock.log.decide.markers import decide_take_over
from penstock.log.decide.rows import need_stream
from penstock.log.decide.trims import last_of_each, need_query
from penstock.log.reading.ends import end_of
from penstock.log.upkeep import (
    AlterStream,
    DeletedStream,
    DeleteQuery,
    DeleteStream,
    Removal,
    ResetQuery,
    SweepStream,
    Trimmed,
    stream_point,
)
from penstock.log.view import Plan, View
from penstock.model.ids import (
    SUBSTREAMS_MAX,
    BatchId,
    Lsn,
    QueryId,
    Substream,
    files_tag,
    substream_tag,
    task_log_tag,
)
from penstock.model.marker import Marker
from penstock.model.schema import check_added

NO_RUN = ""
"""No run has this name: under it the last instance of a deleted query is remembered."""


def decide_alter(operation: AlterStream, view: View) -> Plan:
    """The stream with what was asked for; asking for what it has changes nothing."""
    there = need_stream(view, operation.name)
    altered = there
    if operation.schema is not None and operation.schema != there.schema:
        check_added(_schema(there.schema), _schema(operation.schema), there.name)
        altered = msgspec.structs.replace(
            altered, schema=operation.schema, versions=(*there.versions, there.schema)
        )
    if operation.substreams is not None and operation.substreams != there.substreams:
        _check_growth(there, operation.substreams)
        altered = msgspec.structs.replace(
            altered, substreams=operation.substreams, turns=(*there.turns, end_of(view, there))
        )
    if operation.retention is not None:
        altered = msgspec.structs.replace(altered, retention=operation.retention)
    return Plan(altered, stream=None if altered == there else altered)


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
    is told that its rows are gone instead of being given others.
    """
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
    """What a deleted stream has left, oldest first; the last step forgets the stream itself."""
    left = view.deleted(operation.stream_id)
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


def decide_reset(operation: ResetQuery, view: View) -> Plan:
    """A take-over, after which the query has no batches: the next one marked is any it likes."""
    record = need_query(view, operation.query)
    taken = decide_take_over(TakeQuery(operation.query, operation.run, None), view)
    assert isinstance(taken.answer, Taken)
    if not taken.changes:
        return taken
    fresh = QueryRecord(operation.query, record.name, taken.answer.instance, operation.run)
    return Plan(
        Taken(taken.answer.instance, None),
        taken.entries,
        query=fresh,
        run=taken.run,
        removal=_traces(view, operation.query),
    )


def decide_delete_query(operation: DeleteQuery, view: View) -> Plan:
    """The query, its task log, checkpoint files and whatever of it was never committed."""
    record = need_query(view, operation.query)
    traces = _traces(view, operation.query)
    runs = tuple((operation.query, each.run) for each in view.runs(operation.query) if each.run)
    # Of one that is not remembered nothing is: a batch write of which each has an id of its own.
    points = traces.points if operation.remember else ()
    removal = msgspec.structs.replace(traces, points=points, query=operation.query, runs=runs)
    kept = (operation.query, NO_RUN, record.instance) if operation.remember else None
    return Plan(record, removal=removal, run=kept)


def _traces(view: View, query: QueryId) -> Removal:
    """Everything that says what a query did. Markers stay under the tags of their outputs."""
    task_log = [(task_log_tag(query), lsn) for lsn in view.tagged(task_log_tag(query))]
    files = [(files_tag(query), lsn) for lsn in view.tagged(files_tag(query))]
    heads = (view.head(lsn) for lsn in view.waiting(query))
    waiting = [(head.tags[0], head.lsn) for head in heads if head is not None]
    offsets = []
    found = view.first_offsets(query, BatchId(0))
    while found is not None:
        offsets.append((query, found[0]))
        found = view.first_offsets(query, BatchId(found[0] + 1))
    consumers = tuple(
        (each.reader, each.name, each.stream)
        for each in view.consumers()
        if (each.reader, each.name) == ("query", query)
    )
    return Removal(
        tags=tuple(dict.fromkeys((*task_log, *files, *waiting))),
        points=last_of_each((*task_log, *files)),
        marks=tuple((query, batch) for batch in _marked(view, query)),
        offsets=tuple(offsets),
        stores=tuple((query, each.folder) for each in view.stores(query)),
        consumers=consumers,
    )


def _marked(view: View, query: QueryId) -> list[BatchId]:
    entries = (view.entry(lsn) for lsn in view.marks(query, BatchId(0)))
    return [
        msgspec.json.decode(each.payload, type=Marker).batch for each in entries if each is not None
    ]
