"""Which messages nobody needs any more, once the state has been written down."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from penstock.log.jetstream.codec import text_of
from penstock.log.layout import lsn_of
from penstock.log.store import StoreView
from penstock.model.ids import Lsn


def purges(view: StoreView, subjects: Iterable[str]) -> Iterator[tuple[str, Lsn]]:
    """Each subject with the place below which its messages carry nothing that is still there.

    `view` is the state written down. What is not an entry, and what it does not say, is in it.
    """
    end = view.next_lsn
    lowest = _lowest_entry(view, end)
    for subject in subjects:
        tag = _tag(subject)
        first = lowest if tag is None else next(islice(view.tagged(tag), 1), end)
        if subject == "c":
            first = end
        if first > 1:  # a purge below 1 is one of everything
            yield subject, Lsn(min(first, end))


def _tag(subject: str) -> str | None:
    """The tag whose entries the messages of a subject carry; None: of several tags."""
    kind, _, rest = subject.partition(".")
    if kind == "s":
        stream, _, substream = rest.partition(".")
        return f"s/{text_of(stream)}/{substream}"
    if kind in ("t", "f"):
        return f"{kind}/{text_of(rest)}"
    return text_of(rest) if kind == "x" else None


def _lowest_entry(view: StoreView, end: Lsn) -> Lsn:
    with view.txn.cursor(db=view.tables["entries"]) as cursor:
        return lsn_of(cursor.key()) if cursor.first() else end
