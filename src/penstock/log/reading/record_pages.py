"""Generic records by tag: a page of them, and how far one call may trim."""

from __future__ import annotations

from itertools import islice

from penstock.log.reading.subscription import check_whole
from penstock.log.store.view import StoreView
from penstock.model.answers import RecordLine, RecordPage
from penstock.model.ids import Lsn


def record_page(view: StoreView, tag: str, after: int | None, records_max: int) -> RecordPage:
    """Records of a tag in order. Without `after` from the first one there is; after a place where
    some are gone, `trimmed`."""
    if after is not None:
        check_whole(view, (tag,), after)
    lsns = islice(view.tagged(tag, (after or 0) + 1), records_max)
    entries = (entry for lsn in lsns if (entry := view.entry(lsn)) is not None)
    lines = tuple(
        RecordLine(entry.head.lsn, entry.head.producer, entry.head.seq, entry.payload)
        for entry in entries
    )
    return RecordPage(lines, len(lines) == records_max)


def trim_bound(view: StoreView, tag: str, until: Lsn, count_max: int) -> tuple[Lsn, bool]:
    """Up to where one call trims a tag that is to be trimmed so far, and whether that is less."""
    lsns = list(islice(view.tagged(tag), count_max + 1))
    has_more = len(lsns) > count_max and lsns[-1] <= until
    return (lsns[-2] if has_more else until), has_more


def trimmed_until(view: StoreView, tag: str) -> Lsn:
    """The place up to which records of the tag are gone."""
    return view.trimmed(tag)
