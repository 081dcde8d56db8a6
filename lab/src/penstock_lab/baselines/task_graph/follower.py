"""A subscription of a caller of the log's process, read on the event loop that serves the caller.

A thread for each of them would be woken for every entry, and waking it takes the one interpreter
from the thread that applies the log: profiled with markers every 10 ms, a third of that thread's
time.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from penstock.log.backends.local import LocalLog
from penstock.model.ids import Lsn
from penstock_lab.baselines.task_graph.socket_calls import Answering, encoded_message

PUSHES_MAX = 4
"""How many pushes, each of one read of the subscription, may be on their way to a caller that does
not take them. At that many the subscription is not read until it does."""
_encode = msgspec.msgpack.Encoder().encode


class LoopCalls:
    """Calls from other threads to an event loop: the first that waits wakes it for all."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], object]] = deque()
        self._is_woken = False
        self._lock = threading.Lock()

    def put(self, call: Callable[[], object]) -> None:
        """From any thread; called in the order they are put."""
        self._calls.append(call)
        with self._lock:
            if self._is_woken:
                return
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        with self._lock:
            self._is_woken = False
        while self._calls:
            self._loop.call_soon(self._calls.popleft())


class Follower:
    """Pushes what the subscription gives to who asked for it as `name`, until closed.

    It waits while the caller takes nothing, and while it is asked to `hold`; the log keeps what is
    behind. A subscription that fails ends the caller's connection, with the reason. All of it is
    for the loop's thread.
    """

    def __init__(
        self,
        log: LocalLog,
        tags: Sequence[str],
        after: Lsn,
        caller: Answering,
        name: int,
        loop: asyncio.AbstractEventLoop,
        calls: LoopCalls,
    ) -> None:
        self._caller, self._name, self._loop = caller, name, loop
        self._pushes = 0
        self._is_held = False
        self._is_due = False
        # An answer that comes with the news goes out before it: its task waits for it.
        self.subscription = log.subscribe(tags, after, lambda: calls.put(self._look_soon))
        self._look_soon()

    @property
    def has_room(self) -> bool:
        return self._pushes < PUSHES_MAX and not self._is_held

    def hold(self, is_held: bool) -> None:
        """Push nothing more, or go on."""
        self._is_held = is_held
        self._look_soon()

    def close(self) -> None:
        """Read the log no more; may be called twice."""
        self.subscription.close()

    def _look_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._is_due = False
        if self.subscription.is_closed or not self.has_room:
            return
        try:
            entries = self.subscription.next(0.0)
        except Exception as error:
            self.close()
            self._caller.fail(self._name, error)
            return
        if entries:
            self._pushes += 1
            self._caller.push(encoded_message([0, self._name, _encode(entries)]))
            self._caller.when_taken(self._taken)
        # Without entries there is nothing before the subscription is woken once more.
        if entries and self.subscription.has_news:
            self._look_soon()

    def _taken(self) -> None:
        self._pushes -= 1
        if self.subscription.has_news:
            self._look_soon()
