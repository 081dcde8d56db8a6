"""Traces of a query: all that says what it did, to be removed with it, at once or in steps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import msgspec

from penstock.log.decide.trims import last_of_each
from penstock.log.plan import Removal
from penstock.log.view import View
from penstock.model.ids import BatchId, Lsn, QueryId, files_tag, task_log_tag
from penstock.model.marker import Marker


def traces(view: View, query: QueryId, below: Lsn | None = None) -> Removal:
    """Every trace, or those `below` a place. Markers stay under the tags of their outputs."""
    logged = list(_logged(view, query, below))
    offsets = []
    offsets_entry = view.first_offsets(query, BatchId(0))
    while offsets_entry is not None:
        offsets.append((query, offsets_entry[0]))
        offsets_entry = view.first_offsets(query, BatchId(offsets_entry[0] + 1))
    consumers = tuple(
        (each.reader, each.name, each.stream)
        for each in view.consumers()
        if (each.reader, each.name) == ("query", query)
    )
    return Removal(
        tags=tuple(dict.fromkeys((*logged, *_waiting(view, query)))),
        points=last_of_each(logged),
        marks=tuple((query, batch) for batch in _marked(view, query)),
        offsets=tuple(offsets),
        stores=tuple((query, each.folder) for each in view.stores(query)),
        consumers=consumers,
    )


def traces_step(
    view: View, query: QueryId, entries_max: int | None, below: Lsn | None = None
) -> Removal | None:
    """The oldest entries that say what it did, if it has more than `entries_max`; None: all of its
    traces may go at once."""
    if entries_max is None:
        return None
    count = max(1, entries_max)
    tags = list(islice(chain(_logged(view, query, below), _waiting(view, query)), count + 1))
    if len(tags) <= count:
        return None
    tags.pop()
    own = (task_log_tag(query), files_tag(query))
    heads = (view.head(lsn) for tag, lsn in tags if tag == own[0])
    return Removal(
        tags=tuple(dict.fromkeys(tags)),
        points=last_of_each(each for each in tags if each[0] in own),
        marks=tuple(
            (query, BatchId(head.seq))
            for head in heads
            if head is not None and head.kind == "marker" and head.seq is not None
        ),
    )


def _logged(view: View, query: QueryId, below: Lsn | None) -> Iterator[tuple[str, Lsn]]:
    """Its take-overs, markers and files."""
    for tag in (task_log_tag(query), files_tag(query)):
        lsns = view.tagged(tag)
        yield from ((tag, lsn) for lsn in lsns if below is None or lsn < below)


def _waiting(view: View, query: QueryId) -> Iterator[tuple[str, Lsn]]:
    """What was never committed."""
    heads = (view.head(lsn) for lsn in view.waiting(query))
    yield from ((head.tags[0], head.lsn) for head in heads if head is not None)


def _marked(view: View, query: QueryId) -> list[BatchId]:
    entries = (view.entry(lsn) for lsn in view.marks(query, BatchId(0)))
    return [
        msgspec.json.decode(each.payload, type=Marker).batch for each in entries if each is not None
    ]
