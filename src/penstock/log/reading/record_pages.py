"""Generic records by tag: a page of them, and how far one call may trim."""

from __future__ import annotations

from itertools import islice

from penstock.log.reading.subscription import check_whole
from penstock.log.store.view import StoreView
from penstock.model.answers import RecordLine, RecordPage
from penstock.model.ids import Lsn


def record_page(
    view: StoreView,
    tag: str,
    after: int | None,
    records_max: int,
    bytes_max: int,
    *,
    records_min: int = 1,
) -> RecordPage:
    """Records of a tag in order, of about `bytes_max` bytes, but `records_min` at least. Without
    `after` from the first one there is; after a place where some are gone, `trimmed`."""
    if after is not None:
        check_whole(view, (tag,), after)
    lines: list[RecordLine] = []
    size = 0
    for lsn in view.tagged(tag, (after or 0) + 1):
        head = view.head(lsn)
        if head is None:
            continue
        size += head.payload_bytes
        is_full = size > bytes_max and len(lines) >= records_min
        if len(lines) >= records_max or is_full:
            return RecordPage(tuple(lines), True)
        entry = view.entry(lsn)
        if entry is not None:
            lines.append(RecordLine(lsn, entry.head.producer, entry.head.seq, entry.payload))
    return RecordPage(tuple(lines), False)


def trim_bound(view: StoreView, tag: str, until: Lsn, count_max: int) -> tuple[Lsn, bool]:
    """The place up to which one call trims a tag that may go to `until`; whether more is left."""
    lsns = list(islice(view.tagged(tag), count_max + 1))
    has_more = len(lsns) > count_max and lsns[-1] <= until
    return (lsns[-2] if has_more else until), has_more


def trimmed_until(view: StoreView, tag: str) -> Lsn:
    """The place up to which records of the tag are gone."""
    return view.trimmed(tag)
