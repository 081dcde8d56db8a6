"""The messages that nobody needs any more, once the state has been written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from penstock.log.backends.jetstream.codec import tag_of
from penstock.log.store.layout import lsn_of
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn


def purges(view: StoreView, subjects: Iterable[str]) -> Iterator[tuple[str, Lsn]]:
    """Each subject with the place below which its messages carry nothing that is still there.

    `view` is the state written down. What is not an entry, and what it does not say, is in it.
    """
    end = view.next_lsn
    lowest = _lowest_entry(view, end)
    for subject in subjects:
        tag = tag_of(subject)
        first = lowest if tag is None else next(islice(view.tagged(tag), 1), end)
        if subject == "c":
            first = end
        if first > 1:  # a purge below 1 is one of everything
            yield subject, Lsn(min(first, end))


def _lowest_entry(view: StoreView, end: Lsn) -> Lsn:
    with view.txn.cursor(db=view.tables["entries"]) as cursor:
        return lsn_of(cursor.key()) if cursor.first() else end
