"""Answers of the log on their way to the event loop: all that came together, in one turn of it."""

from __future__ import annotations

import asyncio
from collections import deque
from concurrent.futures import Future
from typing import Any


class LogAnswers:
    """Waits for the log on one event loop.

    A group of operations is answered at once by the thread that wrote it. To wake the loop for each
    of them would cost more than the rest of an answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answered: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._is_waking = False

    def of(self, submitted: Future[Any]) -> asyncio.Future[Any]:
        """The log's answer, to be awaited on the loop. Who gives up waiting takes nothing back."""
        waiting: asyncio.Future[Any] = self._loop.create_future()
        submitted.add_done_callback(lambda answered: self._hand_over(waiting, answered))
        return waiting

    def _hand_over(self, waiting: asyncio.Future[Any], answered: Future[Any]) -> None:
        """From the thread that answers. The pair is in the queue before it is asked whether the
        loop will look, and the loop says that it will not before it looks: none is left behind."""
        self._answered.append((waiting, answered))
        if not self._is_waking and not self._loop.is_closed():
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_waking = False
        while self._answered:
            waiting, answered = self._answered.popleft()
            if waiting.done():
                continue
            error = answered.exception()
            if error is not None:
                waiting.set_exception(error)
            else:
                waiting.set_result(answered.result())
