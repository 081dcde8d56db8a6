"""Room for answers that are being sent: the more of them wait for their readers, the smaller the
next ones are. So slow readers cost the others a part of their pages, and no memory without end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

PAGE_BYTES_MIN = 256 << 10
SHARE = 4
"""A page takes at most one part in so many of the room that is left."""


class PageMemory:
    """The pages of one server. Used on its event loop only."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.held_bytes = 0

    def page_bytes(self, asked: int) -> int:
        """The size that a page may have which is asked for in this one."""
        left = max(0, self._bytes_max - self.held_bytes)
        return min(asked, max(left // SHARE, PAGE_BYTES_MIN))

    @contextmanager
    def held(self, size: int) -> Iterator[Room]:
        """Hold so many bytes, until it is known how many there are, and then those."""
        room = Room(self, size)
        try:
            yield room
        finally:
            room.resize(0)


class Room:
    """Room that one answer holds."""

    def __init__(self, memory: PageMemory, size: int) -> None:
        self._memory = memory
        self._size = 0
        self.resize(size)

    def resize(self, size: int) -> None:
        self._memory.held_bytes += size - self._size
        self._size = size
