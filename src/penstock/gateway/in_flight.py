"""Requests that have been let in and not yet answered, counted for a server that stops."""

from __future__ import annotations

import asyncio
import contextlib


class InFlight:
    """Counts the requests that are being answered."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def __enter__(self) -> None:
        self._count += 1
        self._none.clear()

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if self._count == 0:
            self._none.set()

    async def wait_until_none(self, seconds_max: float) -> None:
        """Wait for the last one; at the bound give up on those that are left."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._none.wait(), seconds_max)
