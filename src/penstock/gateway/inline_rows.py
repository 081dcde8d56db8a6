"""Rows of a small batch, sent with the answer that says how far it reads: tasks fetch nothing."""

from __future__ import annotations

from penstock.errors import PenstockError
from penstock.gateway.context import Gateway
from penstock.log.decide.need import need_stream
from penstock.log.reading.inline_pages import inline_pages
from penstock.log.store.view import StoreView
from penstock.model.answers import InlinePage
from penstock.model.ids import Lsn, StreamName
from penstock.model.requests import AdmissionBody, BatchInputBody

INLINE_BYTES_MAX = 256 << 10
"""Read on the event loop, and copied into tasks: more takes longer than fetching it would."""


def inline_rows(
    gateway: Gateway, stream: StreamName, body: AdmissionBody | BatchInputBody, end: Lsn
) -> tuple[InlinePage, ...] | None:
    """The rows up to `end`, if whoever asks wants as many; None if they are to be fetched, also
    where they can no longer be read: who fetches them is told why."""
    bytes_max = min(body.inline_bytes, INLINE_BYTES_MAX)
    if not bytes_max or end <= body.after:
        return None

    def pages(view: StoreView) -> tuple[InlinePage, ...] | None:
        record = need_stream(view, stream)
        after = Lsn(body.after)
        return inline_pages(view, gateway.schemas, record, after, end, body.columns, bytes_max)

    try:
        return gateway.read(pages)
    except PenstockError:
        return None
