"""Decide on a marker: the one append that commits a batch."""

from __future__ import annotations

import msgspec

from penstock.errors import BadCall
from penstock.log.contract import Head
from penstock.log.decide.checkpoint_files import check_files
from penstock.log.decide.fence import check_instance, control_entry
from penstock.log.decide.need import need_stream
from penstock.log.decide.origins import origin_of_marker
from penstock.log.decide.rows import show
from penstock.log.decide.snapshots import keep_snapshots
from penstock.log.decide.starts import check_starts
from penstock.log.operations import Mark
from penstock.log.plan import Plan, Removal, Showing
from penstock.log.state import QueryRecord
from penstock.log.view import View
from penstock.model.ids import BatchId, Lsn, StreamName, task_log_tag
from penstock.model.marker import Marker, MarkerRef, Stamp, Write


def decide_marker(operation: Mark, view: View) -> Plan:
    """The marker of a batch, in this order:

    1. the fence: only the current instance may mark, whatever else is true;
    2. the batch is marked already: the same marker gets the same answer, another is refused;
    3. a later batch is marked: refused, because batches are marked in order;
    4. places that were answered early are still those of the start that answered: refused if not;
    5. every entry named is there, carries this marker's stamp and is named once;
    6. every checkpoint file named is there and of this batch and instance, and every snapshot is
       whole and newer than the one before it;
    7. the marker entry, and with it everything it names becomes visible, as old as the oldest row
       that the batch read.
    """
    marker = operation.marker
    check_instance(view, marker.query, marker.instance)
    record = view.query(marker.query)
    assert record is not None  # check_instance has seen it
    payload = msgspec.json.encode(marker)
    marked_at = view.marked(marker.query, marker.batch)
    if marked_at is not None:
        if _is_same(marker, marked_at, view):
            return Plan(marked_at)
        raise _already_marked(marker, f"batch {marker.batch} has another marker at {marked_at}")
    if record.marker is not None and record.marker.batch >= marker.batch:
        raise _already_marked(
            marker, f"batch {record.marker.batch} is marked at {record.marker.lsn}"
        )
    check_starts(marker, view)
    heads = _named_entries(marker, view)
    check_files(marker, view)
    kept = keep_snapshots(marker, view)
    tags = sorted({head.tags[0] for group in heads.values() for head in group})
    entry = control_entry(
        view, "marker", (*tags, task_log_tag(marker.query)), payload, marker.instance, marker.batch
    )
    lsn = entry.head.lsn
    ref = MarkerRef(lsn, marker.batch, marker.instance, marker.commit)
    return Plan(
        lsn,
        (entry,),
        showings=tuple(_showings(heads, entry.head, origin_of_marker(marker, record, view), view)),
        query=msgspec.structs.replace(record, marker=ref, copied=_copied(operation, record)),
        mark=(marker.query, marker.batch, lsn),
        named=_named(marker) + kept.named,
        stores=kept.stores,
        loosed=kept.loosed,
        removal=Removal(stores=kept.forgotten) if kept.forgotten else None,
    )


def _copied(operation: Mark, record: QueryRecord) -> BatchId | None:
    """The last batch that the checkpoint location has; what was once copied stays copied."""
    known_batches = [batch for batch in (operation.copied, record.copied) if batch is not None]
    return max(known_batches, default=None)


def _named(marker: Marker) -> tuple[Lsn, ...]:
    rows = tuple(lsn for write in marker.writes for lsn in write.entries)
    return rows + tuple(file.entry for file in marker.files)


def _is_same(marker: Marker, lsn: Lsn, view: View) -> bool:
    entry = view.entry(lsn)
    return entry is not None and msgspec.json.decode(entry.payload, type=Marker) == marker


def _already_marked(marker: Marker, fact: str) -> BadCall:
    return BadCall(
        f"the query {marker.query!r} cannot mark batch {marker.batch}: {fact}; go on after it",
        code="already_marked",
        status=409,
    )


def _named_entries(marker: Marker, view: View) -> dict[StreamName, list[Head]]:
    """The heads of everything the marker names, per stream in the order of the writes."""
    seen: set[Lsn] = set()
    heads_of_streams: dict[StreamName, list[Head]] = {}
    for write in marker.writes:
        stream = need_stream(view, write.stream)
        stamp = Stamp(marker.query, marker.instance, marker.batch, write.partition, write.attempt)
        for lsn in write.entries:
            head = view.head(lsn) if lsn > stream.began else None
            _check_entry(write, lsn, head, stamp, repeated=lsn in seen)
            assert head is not None  # _check_entry has seen it
            seen.add(lsn)
            heads_of_streams.setdefault(write.stream, []).append(head)
    return heads_of_streams


def _check_entry(
    write: Write, lsn: Lsn, head: Head | None, stamp: Stamp, *, repeated: bool
) -> None:
    if head is None:
        fact = "is not there"
    elif repeated:
        fact = "is named twice"
    elif head.kind == "rows":
        fact = "is visible already, by itself"
    elif head.kind == "file":
        fact = f"is the checkpoint file {head.path}, not rows"
    elif head.stamp != stamp:
        fact = f"carries another stamp: {head.stamp}"
    elif head.tags[0].rpartition("/")[0] != f"s/{write.stream}":
        fact = f"is not of the stream {write.stream!r} but tagged {head.tags[0]}"
    else:
        return
    raise BadCall(
        f"the entry {lsn}, named for partition {write.partition} attempt {write.attempt} of batch "
        f"{stamp.batch}, {fact}; name the entries that were answered to that attempt",
        code="unknown_entries",
        status=409,
    )


def _showings(
    heads: dict[StreamName, list[Head]], marker: Head, origin_at_ms: int | None, view: View
) -> list[tuple[StreamName, Showing]]:
    showings = []
    for name, group in sorted(heads.items()):
        stream = need_stream(view, name)
        before = view.last_commit(stream)
        showing = show(stream, before, marker.lsn, marker.arrived_at_ms, group, origin_at_ms)
        showings.append((name, showing))
    return showings
