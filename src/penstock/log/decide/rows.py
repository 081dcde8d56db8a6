"""Decide on rows: appending them visible, and appending entries that wait for a marker."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import TryAgain
from penstock.log.contract import Entry, Head
from penstock.log.decide.fence import check_instance
from penstock.log.decide.need import check_substream, need_stream
from penstock.log.decide.producers import room_for_one
from penstock.log.operations import AppendPending, AppendRows, Draft, Shape
from penstock.log.plan import Plan, ProducerRecord, Removal, Showing
from penstock.log.state import Commit, Covered, StreamRecord, stream_point
from penstock.log.view import Place, View
from penstock.model.answers import Appended
from penstock.model.ids import (
    Lsn,
    Substream,
    substream_tag,
)


def decide_rows(operation: AppendRows, view: View) -> Plan:
    """Rows that commit themselves: the last of their entries is the commit.

    A sequence that is not above the producer's last one is answered and not appended again.
    """
    stream = need_stream(view, operation.stream)
    _check_substreams(stream, operation.drafts)
    version = check_shape(stream, operation.shape)
    repeat = _repeat(operation, stream, view)
    if repeat is not None:
        return Plan(repeat)
    before = view.last_commit(stream)
    if not operation.drafts:
        end = before.lsn if before else view.trimmed(stream_point(stream.name))
        return Plan(Appended(end, 0, ()))
    places = view.places(len(operation.drafts))
    entries = tuple(
        _entry(place, stream, draft, operation, version)
        for place, draft in zip(places, operation.drafts, strict=True)
    )
    heads = [entry.head for entry in entries]
    showing = show(stream, before, places[-1].lsn, places[-1].at_ms, heads)
    answer = Appended(
        showing.commit.lsn,
        sum(draft.rows for draft in operation.drafts),
        tuple(entry.head.lsn for entry in entries),
    )
    producer, removal = None, None
    if operation.producer is not None and operation.sequence is not None:
        if view.producer(stream, operation.producer) is None:
            silent = room_for_one(view, view.silent_producer())
            removal = Removal(silent=silent) if silent else None
        record = ProducerRecord(operation.sequence, answer, view.steady_ms)
        producer = (stream.id, operation.producer, record)
    return Plan(
        answer,
        entries,
        showings=((stream.name, showing),),
        producer=producer,
        removal=removal,
    )


def _entry(
    place: Place, stream: StreamRecord, draft: Draft, operation: AppendRows, version: int
) -> Entry:
    head = Head(
        place.lsn,
        "rows",
        (substream_tag(stream.name, draft.substream),),
        place.at_ms,
        draft.checksum,
        len(draft.payload),
        rows=draft.rows,
        producer=operation.producer,
        seq=operation.sequence,
        version=version,
    )
    return Entry(head, draft.payload)


def _repeat(operation: AppendRows, stream: StreamRecord, view: View) -> Appended | None:
    """The answer to a sequence seen before; only the last one's rows are still known."""
    if operation.producer is None or operation.sequence is None:
        return None
    last = view.producer(stream, operation.producer)
    if last is None or operation.sequence > last.sequence:
        return None
    if operation.sequence == last.sequence:
        return Appended(last.answer.position, last.answer.rows, last.answer.entries, True)
    return Appended(last.answer.position, 0, (), True)


def check_shape(stream: StreamRecord, shape: Shape | None) -> int:
    """The version of the columns that rows are in; `stream_altered` if they must be prepared anew:
    the stream is another one, or keys are divided among more substreams now."""
    if shape is None:
        return len(stream.versions)
    if shape.stream_id != stream.id or shape.routed_by not in (None, stream.substreams):
        raise TryAgain(
            f"the stream {stream.name!r} was altered while rows for it were prepared; try again",
            code="stream_altered",
        )
    return shape.version


def _check_substreams(stream: StreamRecord, drafts: Sequence[Draft]) -> None:
    for draft in drafts:
        check_substream(stream, draft.substream)


def show(
    stream: StreamRecord,
    before: Commit | None,
    commit: Lsn,
    now_ms: int,
    heads: Sequence[Head],
    origin_at_ms: int | None = None,
) -> Showing:
    """The index updates that make `heads` visible at `commit`, in the order given."""
    by_substream: dict[Substream, list[Head]] = {}
    for head in heads:
        by_substream.setdefault(substream_of(head), []).append(head)
    covered = tuple(
        (
            substream,
            Covered(
                sum(head.rows for head in group),
                sum(head.payload_bytes for head in group),
                tuple(head.lsn for head in group),
            ),
        )
        for substream, group in sorted(by_substream.items())
    )
    return Showing(
        stream.id,
        Commit(
            commit,
            (before.rows_total if before else 0) + sum(head.rows for head in heads),
            (before.bytes_total if before else 0) + sum(head.payload_bytes for head in heads),
            now_ms,
            tuple(substream for substream, _ in covered),
            origin_at_ms if origin_at_ms is not None and origin_at_ms < now_ms else None,
        ),
        covered,
    )


def substream_of(head: Head) -> Substream:
    """The substream of a data entry, which its one tag names."""
    return Substream(int(head.tags[0].rpartition("/")[2]))


def decide_pending(operation: AppendPending, view: View) -> Plan:
    """Entries of one task attempt, refused if the query has been taken over meanwhile."""
    stream = need_stream(view, operation.stream)
    _check_substreams(stream, operation.drafts)
    version = check_shape(stream, operation.shape)
    stamp = operation.stamp
    check_instance(view, stamp.query, stamp.instance)
    entries = tuple(
        Entry(
            Head(
                place.lsn,
                "pending",
                (substream_tag(stream.name, draft.substream),),
                place.at_ms,
                draft.checksum,
                len(draft.payload),
                rows=draft.rows,
                producer=stamp.query,
                instance=stamp.instance,
                stamp=stamp,
                version=version,
            ),
            draft.payload,
        )
        for place, draft in zip(view.places(len(operation.drafts)), operation.drafts, strict=True)
    )
    return Plan(tuple(entry.head.lsn for entry in entries), entries)
