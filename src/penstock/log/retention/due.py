"""The parts of a log that nobody needs any more, as steps to take: pure, and bounded.

Each step is an operation that is decided again when it is carried out, so a step that came too
late, or twice, or from two servers, does no harm. A round gives at most one step for each stream
and query; the next round goes on from there.

What everyone has dealt with stays for `settings.trim_after_ms` all the same: who registers late,
or asks what was committed, finds it. A stream that nobody reads is kept as its own retention says.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec

from penstock.log.decide.consumers import Holder, holders
from penstock.log.decide.snapshots import first_needed
from penstock.log.decide.trims import least_needed, waits_in_vain
from penstock.log.operations import (
    DeleteQuery,
    Operation,
    Reclaim,
    ResetQuery,
    SweepStream,
    TrimQuery,
    TrimStream,
)
from penstock.log.reading.visible import earliest, latest, position_at, position_keeping
from penstock.log.retention.trim_step import step_end
from penstock.log.state import QueryRecord, StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, BatchId, Lsn, StreamName
from penstock.model.marker import Marker
from penstock.settings.server import Settings


def steps(view: StoreView, now_ms: int, settings: Settings) -> list[Operation]:
    """The next steps; none: there is nothing to collect now."""
    due_steps: list[Operation] = []
    readers: dict[StreamName, list[Holder]] = {}
    for each in holders(view):
        readers.setdefault(each.stream, []).append(each)
    for stream in view.streams():
        held = least_needed(readers.get(stream.name, ()), now_ms, settings.consumer_away_ms_max)
        until = _until(view, stream, held, now_ms, settings)
        if until > earliest(view, stream):
            due_steps.append(_trim(view, stream, until, now_ms, settings))
    for query in view.queries():
        step = _of_query(view, query, now_ms, settings)
        if step is not None:
            due_steps.append(step)
    due_steps += [SweepStream(left.id, settings.trim_entries_max) for left in view.all_deleted()]
    return due_steps


def away(view: StoreView, now_ms: int, settings: Settings) -> list[Holder]:
    """Consumers that nothing is held for any more, though they were never forgotten."""
    missing = [
        each for each in holders(view) if each.is_away(now_ms, settings.consumer_away_ms_max)
    ]
    return sorted(missing, key=lambda each: (each.reader, each.name, each.stream))


def _until(
    view: StoreView, stream: StreamRecord, held: Holder | None, now_ms: int, settings: Settings
) -> Lsn:
    """How far the stream may go now; `held` is who needs most of it."""
    if held is not None:
        return min(held.position, position_at(view, stream, now_ms - settings.trim_after_ms))
    kept = stream.retention
    until = earliest(view, stream)
    if kept.age_ms_max is not None:
        until = max(until, position_at(view, stream, now_ms - kept.age_ms_max))
    if kept.bytes_max is not None:
        until = max(until, position_keeping(view, stream, kept.bytes_max))
    return min(until, latest(view, stream))


def _trim(
    view: StoreView, stream: StreamRecord, until: Lsn, now_ms: int, settings: Settings
) -> TrimStream:
    end = step_end(view, stream, until, settings.trim_entries_max)
    # By the log's own time where that is behind: a clock put back must not make appends look old.
    forget = _last_before(view, stream, min(now_ms, view.now_ms) - settings.producer_idle_ms_max)
    away_ms = settings.consumer_away_ms_max
    return TrimStream(stream.name, end, away_ms, min(forget, end), now_ms)


def _last_before(view: StoreView, stream: StreamRecord, time_ms: int) -> Lsn:
    """The last commit that arrived before the time; before everything, if all are younger, the one
    at the trim point included."""
    commit = view.commit_at(stream, position_at(view, stream, time_ms))
    return commit.lsn if commit is not None and commit.arrived_at_ms < time_ms else BEFORE_ALL


def _of_query(
    view: StoreView, query: QueryRecord, now_ms: int, settings: Settings
) -> Operation | None:
    """A batch write that is over is forgotten as a whole; else what is left over goes first, then
    markers that a recovery cannot need."""
    before_ms = now_ms - settings.trim_after_ms
    if query.emptying is not None:
        return _emptying(query, settings)
    if query.marker is not None and query.marker.commit is None:
        head = view.head(query.marker.lsn)
        is_over = head is None or head.arrived_at_ms < before_ms
        step = DeleteQuery(query.query, False, query.instance, settings.trim_entries_max)
        return step if is_over else None
    vain = islice(_in_vain(view, query, before_ms), settings.trim_entries_max)
    entries = tuple(vain)
    if entries:
        return Reclaim(query.query, entries)
    below = _below(view, query, before_ms, settings)
    return TrimQuery(query.query, below) if below > query.trimmed else None


def _emptying(query: QueryRecord, settings: Settings) -> Operation:
    """The next step of a reset or deletion that whoever asked for it has not seen to its end."""
    if query.emptying == "reset":
        return ResetQuery(query.query, query.run, settings.trim_entries_max)
    remember = query.emptying == "delete"
    return DeleteQuery(query.query, remember, query.instance, settings.trim_entries_max)


def _in_vain(view: StoreView, query: QueryRecord, before_ms: int) -> Iterator[Lsn]:
    for lsn in view.waiting(query.query):
        head = view.head(lsn)
        if head is None or head.arrived_at_ms >= before_ms:
            return
        if waits_in_vain(view, query.query, head):
            yield lsn


def _below(view: StoreView, query: QueryRecord, before_ms: int, settings: Settings) -> BatchId:
    """The first batch whose marker is kept: not known to be copied, after a snapshot, young, or one
    of the last."""
    if query.marker is None or query.copied is None:
        return query.trimmed
    most = min(query.copied + 1, query.marker.batch - settings.markers_kept_min + 1)
    needed = first_needed(view, query.query)
    most = most if needed is None else min(most, needed)
    below = query.trimmed
    for lsn in islice(view.marks(query.query, query.trimmed), settings.trim_entries_max):
        entry = view.entry(lsn)
        if entry is None or entry.head.arrived_at_ms >= before_ms:
            break
        batch = msgspec.json.decode(entry.payload, type=Marker).batch
        if batch >= most:
            break
        below = BatchId(batch + 1)
    return below
