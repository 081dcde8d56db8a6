"""Operations that a server left half published: which is to be taken back, and when."""

from __future__ import annotations

from penstock.log.backends.jetstream.codec import OperationId
from penstock.model.ids import BEFORE_ALL, Lsn


class HalfPublished:
    """The operation that has waited longest for its last message.

    What takes it back is a message of the stream itself, so it is published once, and again only
    after it was applied here without effect, each time after twice the pause: a server that stands
    still must not fill the stream with them.
    """

    def __init__(self) -> None:
        self._opened: OperationId | None = None
        self._since_s = 0.0
        self._tries = 0
        self._published_at = BEFORE_ALL

    def due(
        self, opened: OperationId | None, applied: Lsn, now_s: float, open_s_max: float
    ) -> OperationId | None:
        """The operation to take back now; `opened` is the one that waits longest, if any."""
        if opened != self._opened:
            self._opened, self._since_s, self._tries = opened, now_s, 0
            return None
        pause_s = open_s_max * 2**self._tries
        if opened is None or applied < self._published_at or now_s - self._since_s <= pause_s:
            return None
        self._since_s = now_s
        self._tries += 1
        return opened

    def published(self, lsn: Lsn) -> None:
        """The message that takes it back has this place."""
        self._published_at = lsn
