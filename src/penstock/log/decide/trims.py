"""Decide on trims: what may go, and every row of every index that goes with it.

Only what nobody needs any more is removed: rows that every consumer has dealt with, markers and
checkpoint files that a recovery cannot ask for, entries that no marker can name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from penstock.errors import BadCall
from penstock.log.contract import Head
from penstock.log.decide.consumers import Holder, holders
from penstock.log.decide.need import need_query, need_stream
from penstock.log.decide.records import OWN_TAGS
from penstock.log.decide.snapshots import first_needed, is_superseded
from penstock.log.operations import Reclaim, Trimmed, TrimQuery, TrimStream, TrimTag
from penstock.log.plan import Plan, Removal
from penstock.log.state import Commit, StreamRecord, stream_point
from penstock.log.view import View
from penstock.model.ids import (
    BatchId,
    Lsn,
    QueryId,
    Substream,
    files_tag,
    substream_tag,
    task_log_tag,
)
from penstock.model.marker import Marker, TakeOver

RUNS_KEPT = 1_000
"""Runs of a query whose late take-over is still told apart from a new run's."""


def decide_trim_stream(operation: TrimStream, view: View) -> Plan:
    """The commits up to the last one at or before `until`, and what they made visible.

    That last commit itself stays in the index of commits, without its rows: its totals are what
    the rows after it are counted from. Entries whose marker comes later are left alone.
    """
    stream = need_stream(view, operation.stream)
    point = view.trimmed(stream_point(stream.name))
    last = last_trimmed(operation, view)
    if last is None:
        return Plan(Trimmed(point))
    removal, entries = _stream_removal(view, stream, point, last, operation.forget)
    base = view.commit_at(stream, point)
    size = last.bytes_total - (base.bytes_total if base is not None else 0)
    return Plan(Trimmed(last.lsn, entries, size), removal=removal)


def last_trimmed(operation: TrimStream, view: View) -> Commit | None:
    """The last commit whose rows a trim removes; None: it removes none. Refused if somebody still
    needs them."""
    stream = need_stream(view, operation.stream)
    point = view.trimmed(stream_point(stream.name))
    last = view.commit_at(stream, operation.until)
    if last is None or last.lsn <= point:
        return None
    now_ms = view.now_ms if operation.now_ms is None else min(view.now_ms, operation.now_ms)
    held = least_needed(holders(view, stream.name), now_ms, operation.away_ms)
    if held is not None and max(held.position, point) < last.lsn:
        raise BadCall(
            f"the stream {stream.name!r} cannot be trimmed up to {last.lsn}: {held} has not dealt "
            "with all of it; trim less, wait for it, or forget it",
            code="still_needed",
            status=409,
        )
    return last


def least_needed(readers: Iterable[Holder], now_ms: int, away_ms: int) -> Holder | None:
    """The one furthest behind of those who are waited for; None: nobody is.

    One that is behind the trim point needs what comes after it: it may know better than the log
    how far it has come, as a query does whose marker no longer names an input.
    """
    live = (each for each in readers if not each.is_away(now_ms, away_ms))
    return min(live, key=lambda each: each.position, default=None)


def _stream_removal(
    view: View, stream: StreamRecord, point: Lsn, last: Commit, forget: Lsn
) -> tuple[Removal, int]:
    tags: list[tuple[str, Lsn]] = []
    visible: list[tuple[int, Substream, Lsn]] = []
    commits: list[tuple[int, Lsn]] = []
    entries = 0
    base = view.commit_at(stream, point)
    if base is not None:
        commits.append((stream.id, base.lsn))
    for commit in view.commits(stream, point + 1, last.lsn):
        head = view.head(commit.lsn)
        for substream in commit.substreams:
            tag = substream_tag(stream.name, substream)
            covered = view.covered(stream, substream, commit.lsn)
            lsns = covered.entries if covered is not None else ()
            entries += len(lsns)
            tags += [(tag, lsn) for lsn in lsns]
            if head is not None and head.kind == "marker":
                tags.append((tag, commit.lsn))
            visible.append((stream.id, substream, commit.lsn))
        if commit.lsn < last.lsn:
            commits.append((stream.id, commit.lsn))
    producers = view.producers_until(stream, min(forget, last.lsn))
    removal = Removal(
        tags=tuple(tags),
        points=((stream_point(stream.name), last.lsn), *last_of_each(tags)),
        commits=tuple(commits),
        visible=tuple(visible),
        producers=tuple((stream.id, producer) for producer in producers),
    )
    return removal, entries


def last_of_each(tags: Iterable[tuple[str, Lsn]]) -> tuple[tuple[str, Lsn], ...]:
    """The trim points of tags whose entries go. A reader that has a tag's last one lacks none."""
    last: dict[str, Lsn] = {}
    for tag, lsn in tags:
        last[tag] = max(lsn, last.get(tag, lsn))
    return tuple(last.items())


def decide_trim_query(operation: TrimQuery, view: View) -> Plan:
    """The markers below a batch. The newest stays whatever is asked, those that the checkpoint
    location is not known to have, and those after a snapshot in the log: a recovery brings the
    location up from these."""
    query = operation.query
    record = need_query(view, query)
    copied = -1 if record.copied is None else record.copied
    newest = record.marker.batch if record.marker is not None else -1
    needed = first_needed(view, query)
    if operation.below > min(copied + 1, newest, newest if needed is None else needed):
        state = "" if needed is None else f", and its state needs change logs from {needed} on"
        raise BadCall(
            f"the query {query!r} cannot be trimmed below batch {operation.below}: its last marker "
            f"is of batch {newest}, and its checkpoint location is known to have batches up to "
            f"{copied}{state}; trim less",
            code="still_needed",
            status=409,
        )
    tags: list[tuple[str, Lsn]] = []
    marks: list[tuple[QueryId, BatchId]] = []
    kept: Marker | None = None
    size = 0
    for lsn in view.marks(query, record.trimmed):
        entry = view.entry(lsn)
        marker = None if entry is None else msgspec.json.decode(entry.payload, type=Marker)
        if entry is None or marker is None:
            continue
        if marker.batch >= operation.below:
            kept = marker
            break
        size += entry.head.payload_bytes
        marks.append((query, marker.batch))
        tags.append((task_log_tag(query), lsn))
        tags += [(files_tag(query), file.entry) for file in marker.files]
    if kept is None or not marks:
        return Plan(Trimmed(record.trimmed))
    tags += _take_overs_before(view, kept)
    runs = _runs_before(view, query, record.instance - RUNS_KEPT)
    changed = msgspec.structs.replace(record, trimmed=operation.below)
    return Plan(
        Trimmed(operation.below, len(tags), size),
        query=changed,
        removal=Removal(tags=tuple(tags), points=last_of_each(tags), marks=tuple(marks), runs=runs),
    )


def _take_overs_before(view: View, kept: Marker) -> Iterator[tuple[str, Lsn]]:
    """Those of instances older than the one whose marker is the first that is kept."""
    tag = task_log_tag(kept.query)
    for lsn in view.tagged(tag):
        entry = view.entry(lsn)
        if entry is None or entry.head.kind != "take over":
            continue
        if msgspec.json.decode(entry.payload, type=TakeOver).instance >= kept.instance:
            return
        yield tag, lsn


def _runs_before(view: View, query: QueryId, instance: int) -> tuple[tuple[QueryId, str], ...]:
    return tuple((query, each.run) for each in view.runs(query) if 0 < each.instance < instance)


def decide_trim_tag(operation: TrimTag, view: View) -> Plan:
    """Records up to a place. Tags of streams and queries are trimmed by these."""
    if operation.tag.startswith(OWN_TAGS):
        raise BadCall(
            f"the tag {operation.tag!r} belongs to a stream or a query; trim that instead",
            code="bad_tag",
        )
    point = view.trimmed(operation.tag)
    if operation.until <= point:
        return Plan(Trimmed(point))
    gone = []
    for lsn in view.tagged(operation.tag):
        if lsn > operation.until:
            break
        gone.append((operation.tag, lsn))
    if not gone:
        return Plan(Trimmed(point))
    removal = Removal(tags=tuple(gone), points=last_of_each(gone))
    return Plan(Trimmed(operation.until, len(gone)), removal=removal)


def decide_reclaim(operation: Reclaim, view: View) -> Plan:
    """The entries among those named that wait in vain; the others are left without a word."""
    asked = set(operation.entries)
    gone = []
    size = 0
    for lsn in view.waiting(operation.query):
        head = view.head(lsn) if lsn in asked else None
        if head is not None and waits_in_vain(view, operation.query, head):
            gone.append((head.tags[0], lsn))
            size += head.payload_bytes
    if not gone:
        return Plan(Trimmed(0))
    return Plan(Trimmed(gone[-1][1], len(gone), size), removal=Removal(tags=tuple(gone)))


def waits_in_vain(view: View, query: QueryId, head: Head) -> bool:
    """Whether no marker can ever name the entry: its instance was taken over, or its batch is
    marked without it. The newest offsets of a batch that has no marker are kept whoever wrote them:
    the batch is run again with these. A file of a snapshot may be named by a later batch's marker,
    until one names a snapshot that is as new."""
    record = view.query(query)
    if record is None:
        return True
    batch = head.stamp.batch if head.stamp is not None else head.seq
    if batch is None or head.instance is None:
        return False
    recorded = view.first_offsets(query, BatchId(batch))
    if recorded == (batch, head.lsn):
        return False
    marked = record.marker.batch if record.marker is not None else -1
    is_passed = is_superseded(view, query, head)
    return head.instance < record.instance or (batch <= marked if is_passed is None else is_passed)
