"""Where a stream ends."""

from __future__ import annotations

from penstock.log.contract import StreamRecord
from penstock.log.upkeep import stream_point
from penstock.log.view import View
from penstock.model.ids import Lsn


def end_of(view: View, stream: StreamRecord) -> Lsn:
    """The position of the last commit, or the trim point of a stream that has none after it."""
    last = view.last_commit(stream)
    point = view.trimmed(stream_point(stream.name))
    return max(last.lsn, point) if last is not None else point
