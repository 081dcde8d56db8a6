"""Verifying the end of the log at start, and cutting a damaged end off when told to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import lmdb
import msgspec

from penstock.clock import Clock
from penstock.errors import Damaged
from penstock.log.decide.fence import decide_take_over
from penstock.log.operations import TakeQuery
from penstock.log.plan import ProducerRecord
from penstock.log.state import Covered, QueryRecord
from penstock.log.store import layout
from penstock.log.store.apply import Effects
from penstock.log.store.layout import ProducerState, RecordedState, Tables, lsn_key, lsn_of
from penstock.log.store.view import StoreView
from penstock.model.answers import Appended
from penstock.model.ids import BatchId, Lsn, files_tag, offsets_batch, task_log_tag
from penstock.model.marker import Marker, MarkerRef


@dataclass(frozen=True)
class Cut:
    """The part that was removed: every entry from `first` to `last`, and what rested on them."""

    first: Lsn
    last: Lsn
    entries: int
    commits: int
    queries: tuple[str, ...]

    def __str__(self) -> str:
        fenced = f"; fenced the queries {', '.join(self.queries)}" if self.queries else ""
        return (
            f"removed the entries {self.first} to {self.last} ({self.entries} of them) and "
            f"{self.commits} commits of streams{fenced}; their places are not used again"
        )


@dataclass(frozen=True)
class Damage:
    """The first damaged entry, and how many after it are whole."""

    first: Lsn
    whole: int


def first_damaged(view: StoreView, entries_max: int, bytes_max: int) -> Damage | None:
    """The first damaged entry among the last ones, going back up to either bound."""
    damage: Damage | None = None
    seen = size = whole = 0
    with view.txn.cursor(db=view.tables["entries"]) as cursor:
        for key, stored in cursor.iterprev():
            if seen >= entries_max or size >= bytes_max:
                break
            seen += 1
            size += len(stored)
            lsn = lsn_of(key)
            try:
                layout.decode_payload(lsn, stored)
                whole += 1
            except Damaged:
                damage = Damage(lsn, whole)
    return damage


def refusal(damage: Damage) -> Damaged:
    """Also of an end that is damaged as a whole: every entry there was synced and answered, so it
    is for whoever runs the server to say that it may go."""
    follow = (
        f"{damage.whole} whole entries follow it" if damage.whole else "no whole entry follows it"
    )
    return Damaged(
        f"the log is damaged from entry {damage.first} on: its bytes do not match their checksum, "
        f"and {follow}; restore the data folder from a backup, or start once with "
        "--cut-damaged-tail, which removes that entry and everything after it, whole or not",
        code="damaged",
    )


def cut_from(env: lmdb.Environment, tables: Tables, first: Lsn, clock: Clock) -> Cut:
    """Remove every entry from `first` on, from every index, in one transaction.

    Producers and queries go back to their last sequence and marker before the cut, and recorded
    offsets to what the files that are left say. A query that lost anything is taken over, so that
    an instance which still believes in what was removed is fenced instead of building on it.
    `next_lsn` stays, so no place is used twice.
    """
    with env.begin(write=True) as txn:
        view = StoreView(txn, tables, clock.wall_ms())
        effects = Effects(view)
        last = Lsn(view.next_lsn - 1)
        lost_queries = list(_queries_after(view, first))
        _put_back_waiting(view, effects, first)
        entries = _drop(view, "entries", first)
        for table in ("tags", "visible", "origins", "producer_uses", "aux", "waiting"):
            _drop(view, table, first)
        commits = _drop(view, "commits", first)
        _drop_marks(view, first)
        for key in _producers_after(view, first):
            _put_back_producer(view, effects, key, first)
        _put_back_recorded(view, first)
        for query in lost_queries:
            _put_back_query(view, effects, query, last)
        effects.put_counter("next_lsn", view.next_lsn)
    return Cut(first, last, entries, commits, tuple(query.query for query in lost_queries))


def _drop(view: StoreView, table: str, first: Lsn) -> int:
    """Delete every key that ends with a place at or after `first`."""
    handle = view.tables[table]
    with view.txn.cursor(db=handle) as cursor:
        gone = [bytes(key) for key in cursor.iternext(values=False) if lsn_of(key) >= first]
    for key in gone:
        view.txn.delete(key, db=handle)
    return len(gone)


def _put_back_waiting(view: StoreView, effects: Effects, first: Lsn) -> None:
    """Entries that only a marker to be removed names are named by none again."""
    with view.txn.cursor(db=view.tables["visible"]) as cursor:
        lost = [
            lsn
            for key, value in cursor
            if lsn_of(key) >= first
            for lsn in msgspec.msgpack.decode(value, type=Covered).entries
            if lsn < first
        ]
    for lsn in lost:
        head = view.head(lsn)
        if head is not None and head.kind == "pending" and head.producer is not None:
            effects.put("waiting", layout.waiting_key(head.producer, lsn), b"")


def _drop_marks(view: StoreView, first: Lsn) -> None:
    marks = view.tables["marks"]
    with view.txn.cursor(db=marks) as cursor:
        gone = [bytes(key) for key, value in cursor if msgspec.msgpack.decode(value) >= first]
    for key in gone:
        view.txn.delete(key, db=marks)


def _queries_after(view: StoreView, first: Lsn) -> Iterator[QueryRecord]:
    for query in view.queries():
        tags = (task_log_tag(query.query), files_tag(query.query))
        if any(next(view.tagged(tag, first), None) is not None for tag in tags):
            yield query


def _producers_after(view: StoreView, first: Lsn) -> list[bytes]:
    with view.txn.cursor(db=view.tables["producers"]) as cursor:
        return [
            bytes(key)
            for key, value in cursor
            if msgspec.msgpack.decode(value, type=ProducerState).answer.position >= first
        ]


def _put_back_producer(view: StoreView, effects: Effects, key: bytes, first: Lsn) -> None:
    """Find the producer's last append before the cut by walking the stream's commits back. One of a
    stream that was deleted, and not swept yet, is forgotten as the sweep would."""
    stream_id, producer = int.from_bytes(key[:4], "big"), key[4:].decode("utf-8")
    view.txn.delete(key, db=view.tables["producers"])
    stream = next((stream for stream in view.streams() if stream.id == stream_id), None)
    commit = None if stream is None else view.commit_at(stream, first - 1)
    while stream is not None and commit is not None:
        head = view.head(commit.lsn)
        if head is not None and head.producer == producer and head.seq is not None:
            lsns = tuple(
                lsn
                for substream in commit.substreams
                if (covered := view.covered(stream, substream, commit.lsn)) is not None
                for lsn in covered.entries
            )
            before = view.commit_at(stream, commit.lsn - 1)
            rows = commit.rows_total - (before.rows_total if before is not None else 0)
            answer = Appended(commit.lsn, rows, tuple(sorted(lsns)))
            record = ProducerRecord(head.seq, answer, view.steady_ms)
            effects.put_producer(stream_id, producer, record)
            return
        commit = view.commit_at(stream, commit.lsn - 1)


def _put_back_recorded(view: StoreView, first: Lsn) -> None:
    """Forget the sequences of the records removed, and say anew which is the highest of each."""
    seqs, uses = view.tables["record_seqs"], view.tables["record_uses"]
    producers = view.tables["record_producers"]
    with view.txn.cursor(db=seqs) as cursor:
        gone = [bytes(key) for key, value in cursor if msgspec.msgpack.decode(value) >= first]
    for key in gone:
        view.txn.delete(key, db=seqs)
    for producer in {key[:-9] for key in gone}:
        before = msgspec.msgpack.decode(view.get("record_producers", producer), type=RecordedState)
        view.txn.delete(lsn_key(before.lsn), db=uses)
        view.txn.delete(producer, db=producers)
        left = _recorded(view, producer)
        if left:
            state = RecordedState(max(left), max(left.values()), before.heard_ms)
            view.txn.put(producer, msgspec.msgpack.encode(state), db=producers)
            view.txn.put(lsn_key(state.lsn), producer, db=uses)


def _recorded(view: StoreView, producer: bytes) -> dict[int, Lsn]:
    prefix = producer + b"\x00"
    lsns: dict[int, Lsn] = {}
    with view.txn.cursor(db=view.tables["record_seqs"]) as cursor:
        has_row = cursor.set_range(prefix)
        while has_row and bytes(cursor.key()[:-8]) == prefix:
            lsns[lsn_of(cursor.key())] = msgspec.msgpack.decode(cursor.value())
            has_row = cursor.next()
    return lsns


def _put_back_query(view: StoreView, effects: Effects, query: QueryRecord, last: Lsn) -> None:
    marker: MarkerRef | None = None
    for lsn in view.tagged(task_log_tag(query.query)):
        entry = view.entry(lsn)
        if entry is not None and entry.head.kind == "marker":
            named = msgspec.json.decode(entry.payload, type=Marker)
            marker = MarkerRef(lsn, named.batch, named.instance, named.commit)
    _forget_stores(view, effects, query)
    record = msgspec.structs.replace(query, marker=marker)
    view.txn.put(
        query.query.encode("utf-8"),
        msgspec.msgpack.encode(record),
        db=view.tables["queries"],
    )
    _put_back_offsets(view, effects, record)
    taken = TakeQuery(query.query, f"cut-damaged-tail-{last}", query.name)
    effects.apply(decide_take_over(taken, view))


def _forget_stores(view: StoreView, effects: Effects, query: QueryRecord) -> None:
    """A snapshot from before the one that is lost may be gone. The location has them all; the next
    run begins anew to keep them here."""
    for store in list(view.stores(query.query)):
        view.txn.delete(layout.store_key(query.query, store.folder), db=view.tables["stores"])
        for lsn in store.entries:
            if view.head(lsn) is not None:
                effects.put("waiting", layout.waiting_key(query.query, lsn), b"")


def _put_back_offsets(view: StoreView, effects: Effects, query: QueryRecord) -> None:
    """Record anew what the files that are left say: a lost marker makes its batch unmarked again,
    and a lost file may have had one before it."""
    while (offsets := view.first_offsets(query.query, BatchId(0))) is not None:
        view.txn.delete(layout.mark_key(query.query, offsets[0]), db=view.tables["offsets"])
    marked = query.marker.batch if query.marker is not None else -1
    for lsn in view.tagged(files_tag(query.query)):
        head = view.head(lsn)
        if head is not None and head.seq is not None and head.seq > marked:
            effects.put("waiting", layout.waiting_key(query.query, lsn), b"")
        batch = offsets_batch(head.path) if head is not None and head.path is not None else None
        if batch is not None and batch > marked:
            effects.put_offsets(query.query, batch, lsn)
