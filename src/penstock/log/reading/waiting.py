"""Age of what waits in a stream: its oldest arrival and its oldest origin."""

from __future__ import annotations

from penstock.log.decide.origins import Oldest, oldest_between
from penstock.log.reading.visible import latest
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn

__all__ = ["Oldest", "oldest_waiting"]


def oldest_waiting(
    view: StoreView, stream: StreamRecord, after: Lsn, until: Lsn | None = None
) -> Oldest | None:
    """The oldest of what is visible after a position, up to `until` or the end; None: nothing is.

    Takes the time of a few index look-ups, however much waits. Both times are the log's own, in
    milliseconds since 1970, and never after the later of the log's clock and the view's `now_ms`.
    """
    end = latest(view, stream) if until is None else until
    return oldest_between(view, stream, after, end)
