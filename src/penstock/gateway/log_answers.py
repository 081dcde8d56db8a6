"""Answers of the log on their way to the event loop: all that came together, in one turn of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from penstock.log.backends.keep_running import going_on


class LogAnswers:
    """Waits for the log on one event loop.

    A group of operations is answered at once by the thread that wrote it. To wake the loop for each
    of them would cost more than the rest of an answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answered: deque[tuple[Callable[[Future[Any]], None], Future[Any]]] = deque()
        self._is_waking = False

    def of(self, submitted: Future[Any]) -> asyncio.Future[Any]:
        """The log's answer, to be awaited on the loop. Who gives up waiting takes nothing back."""
        waiting: asyncio.Future[Any] = self._loop.create_future()
        self.call(submitted, partial(_settle, waiting))
        return waiting

    def call(self, submitted: Future[Any], on_answer: Callable[[Future[Any]], None]) -> None:
        """Call `on_answer` on the loop once the log has answered."""
        submitted.add_done_callback(partial(self._hand_over, on_answer))

    def _hand_over(self, on_answer: Callable[[Future[Any]], None], answered: Future[Any]) -> None:
        """From the thread that answers. The pair is in the queue before it is asked whether the
        loop will look, and the loop says that it will not before it looks: none is left behind."""
        self._answered.append((on_answer, answered))
        if not self._is_waking and not self._loop.is_closed():
            self._is_waking = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._is_waking = False
        while self._answered:
            on_answer, answered = self._answered.popleft()
            with going_on("handing over an answer of the log"):
                on_answer(answered)


def _settle(waiting: asyncio.Future[Any], answered: Future[Any]) -> None:
    if waiting.done():
        return
    error = answered.exception()
    if error is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(answered.result())
