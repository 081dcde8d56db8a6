"""Turns of the event loop shared out: of many light requests that come at once, a few in each."""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """Lets so many through in one turn of the loop, in the order in which they came. What they do
    then, they do at once; whoever asks for something else comes in between."""

    def __init__(self, per_turn: int) -> None:
        self._per_turn = per_turn
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a place in a turn of the loop."""
        if self._taken == 0:
            asyncio.get_running_loop().call_soon(self._next)
        if self._taken < self._per_turn and not self._waiting:
            self._taken += 1
            return
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        await place

    def _next(self) -> None:
        self._taken = 0
        while self._waiting and self._taken < self._per_turn:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._taken += 1
        if self._taken:
            asyncio.get_running_loop().call_soon(self._next)
