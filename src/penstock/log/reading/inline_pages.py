"""Rows of a small batch, page by page of its substreams, to travel with the answer that cuts it."""

from __future__ import annotations

from itertools import islice

import pyarrow as pa

from penstock.log.reading.commits import counts_between
from penstock.log.reading.row_pages import row_page
from penstock.log.reading.schemas import StreamSchemas
from penstock.log.reading.visible import Range
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.answers import InlinePage
from penstock.model.ids import Lsn, Substream

COMMITS_MAX = 512
"""A batch of more is fetched: to look for their rows takes longer than a request does."""


def inline_pages(
    view: StoreView,
    schemas: StreamSchemas,
    stream: StreamRecord,
    after: Lsn,
    end: Lsn,
    columns: int | None,
    bytes_max: int,
) -> tuple[InlinePage, ...] | None:
    """All rows of a stream in `(after, end]`, by the substreams that have any; None if these are
    more than `bytes_max` bytes, or the stream has not so many columns."""
    schema = schemas.current(stream)
    _, size = counts_between(view, stream, after, end)
    if end <= after or size > bytes_max or (columns or 1) > len(schema):
        return None
    if columns is not None and columns < len(schema):
        schema = pa.schema(list(schema)[:columns])
    commits = list(islice(view.commits(stream, after + 1, end), COMMITS_MAX + 1))
    if len(commits) > COMMITS_MAX:
        return None
    substreams = {substream for commit in commits for substream in commit.substreams}
    pages = []
    for substream in sorted(substreams):
        asked = Range(stream, after, end, Substream(substream))
        page = row_page(view, schemas, asked, schema, bytes_max, COMMITS_MAX)
        if page.cursor is not None:
            return None
        pages.append(InlinePage(int(substream), page.body))
    return tuple(pages)
