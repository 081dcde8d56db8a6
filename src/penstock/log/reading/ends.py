"""Where a stream ends: what is committed in it, and what readers outside a chain see of that."""

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


def shown_end(view: View, stream: StreamRecord) -> Lsn:
    """The last position that every reader may see: of a stream that aligned queries write, where
    their last complete barrier was."""
    end, line = end_of(view, stream), view.line(stream.name)
    if line is None or line.shown is None or line.shown >= end:
        return end
    return max(line.shown, view.trimmed(stream_point(stream.name)))
