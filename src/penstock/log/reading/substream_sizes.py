"""Rows and bytes of a batch by substream, from the index of commits; no row is read for it."""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

from penstock.log.reading.commits import counts_between
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

COMMITS_MAX = 64
"""Commits that are looked at; the substreams of a batch with more are taken to have the parts that
they have in these."""


class SubstreamSizes(NamedTuple):
    """The rows of a batch in all, and the bytes of each substream that has any, in its order."""

    rows: int
    bytes_by_substream: tuple[int, ...]


def substream_sizes(view: StoreView, stream: StreamRecord, after: Lsn, end: Lsn) -> SubstreamSizes:
    """The sizes of the substreams of a stream in `(after, end]`."""
    rows, size_bytes = counts_between(view, stream, after, end)
    seen: dict[int, int] = {}
    for commit in islice(view.commits(stream, after + 1, end), COMMITS_MAX):
        for substream in commit.substreams:
            covered = view.covered(stream, substream, commit.lsn)
            if covered is not None:
                seen[int(substream)] = seen.get(int(substream), 0) + covered.payload_bytes
    total = sum(seen.values())
    if not total:
        return SubstreamSizes(rows, ())
    return SubstreamSizes(
        rows, tuple(round(seen[each] * size_bytes / total) for each in sorted(seen))
    )
