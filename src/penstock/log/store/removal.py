"""Carrying out what a trim, a deletion or a reset removes."""

from __future__ import annotations

import msgspec

from penstock.log.store import layout
from penstock.log.store.layout import ProducerState, lsn_key
from penstock.log.store.view import StoreView
from penstock.log.upkeep import Removal
from penstock.model.ids import Lsn

_encode = msgspec.msgpack.Encoder().encode
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode


def remove(view: StoreView, removal: Removal) -> None:
    """Delete every row the removal names, and each entry that has no tag left."""
    for point, lsn in removal.points:
        # Entries go with their commits, and so one may go after another with a later place.
        furthest = max(lsn, view.trimmed(point))
        view.txn.put(point.encode("utf-8"), _encode(furthest), db=view.tables["trims"])
    for stream_id, producer in removal.producers:
        _remove_producer(view, stream_id, producer)
    for table, keys in _keys(removal).items():
        for key in keys:
            view.txn.delete(key, db=view.tables[table])
    untag(view, removal.tags)


def untag(view: StoreView, tags: tuple[tuple[str, Lsn], ...]) -> None:
    """Delete rows of the tag index, and each entry with the last of its own."""
    for tag, lsn in tags:
        view.txn.delete(layout.tag_key(tag, lsn), db=view.tables["tags"])
    for lsn in dict.fromkeys(lsn for _, lsn in tags):
        head = view.head(lsn)
        if head is None or any(
            view.get("tags", layout.tag_key(tag, lsn)) is not None for tag in head.tags
        ):
            continue
        view.txn.delete(lsn_key(lsn), db=view.tables["entries"])
        view.txn.delete(lsn_key(lsn), db=view.tables["aux"])
        if head.kind in ("pending", "file") and head.producer is not None:
            key = layout.waiting_key(head.producer, lsn)
            view.txn.delete(key, db=view.tables["waiting"])


def _keys(removal: Removal) -> dict[str, list[bytes]]:
    return {
        "commits": [layout.commit_key(*each) for each in removal.commits],
        "visible": [layout.visible_key(*each) for each in removal.visible],
        "consumers": [layout.consumer_key(*each) for each in removal.consumers],
        "marks": [layout.mark_key(*each) for each in removal.marks],
        "offsets": [layout.mark_key(*each) for each in removal.offsets],
        "runs": [layout.run_key(*each) for each in removal.runs],
        "stores": [layout.store_key(*each) for each in removal.stores],
        "streams": [] if removal.stream is None else [removal.stream.encode("utf-8")],
        "queries": [] if removal.query is None else [removal.query.encode("utf-8")],
        "deleted": [] if removal.swept is None else [layout.stream_prefix(removal.swept)],
    }


def _remove_producer(view: StoreView, stream_id: int, producer: str) -> None:
    key = layout.producer_key(stream_id, producer)
    found = view.get("producers", key)
    if found is not None:
        position = _decode_producer(found).answer.position
        view.txn.delete(lsn_key(position), db=view.tables["producer_uses"])
        view.txn.delete(key, db=view.tables["producers"])
