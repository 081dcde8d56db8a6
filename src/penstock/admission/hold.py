"""Requests held until a stream shows something new, without asking again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.model.ids import StreamName


class Watch:
    """One held request. Look, then wait: what became visible since the last look wakes it."""

    def __init__(self, held: Held, deadline: float) -> None:
        self._held = held
        self._deadline = deadline
        self._event = asyncio.Event()
        self._is_urgent = False
        self._ignores_news = False

    def wake(self, *, is_urgent: bool = False) -> None:
        """End the wait; unless it is urgent, not before the moment from which news count."""
        if is_urgent or not self._ignores_news:
            self._is_urgent = self._is_urgent or is_urgent
            self._event.set()

    async def wait(self) -> bool:
        """True when there may be something new; False when time is up or the server stops."""
        left = self._deadline - asyncio.get_running_loop().time()
        if self._held.released or left <= 0:
            return False
        try:
            await asyncio.wait_for(self._event.wait(), left)
        except TimeoutError:
            return False
        self._event.clear()
        return not self._held.released

    async def wait_between(self, news_from_s: float, until_s: float) -> None:
        """Wait for `until_s` seconds at most. News end the wait, but not within the first
        `news_from_s` seconds: those end it then, and only once, however many come."""
        loop = asyncio.get_running_loop()
        news_at, until = loop.time() + news_from_s, loop.time() + until_s
        try:
            while not self._held.released and (left := until - loop.time()) > 0:
                try:
                    await asyncio.wait_for(self._event.wait(), left)
                except TimeoutError:
                    return
                self._event.clear()
                if self._is_urgent or loop.time() >= news_at:
                    return
                self._ignores_news, until = True, min(until, news_at)
        finally:
            self._is_urgent = self._ignores_news = False


class Held:
    """All held requests of a server, by stream. Lives on one event loop."""

    def __init__(self) -> None:
        self._watches: dict[StreamName, set[Watch]] = {}
        self._all: set[Watch] = set()
        self._loop = asyncio.get_running_loop()
        self.released = False

    @contextmanager
    def watch(self, streams: Iterable[StreamName], wait_s: float) -> Iterator[Watch]:
        """Register before looking, so that nothing between the look and the wait is missed."""
        names = set(streams)
        watch = Watch(self, self._loop.time() + wait_s)
        self._all.add(watch)
        for name in names:
            self._watches.setdefault(name, set()).add(watch)
        try:
            yield watch
        finally:
            self._all.discard(watch)
            for name in names:
                watches = self._watches[name]
                watches.discard(watch)
                if not watches:
                    del self._watches[name]

    def notify(self, streams: frozenset[StreamName]) -> None:
        """From any thread: these streams show something new."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, streams)

    def _wake(self, streams: frozenset[StreamName]) -> None:
        for name in streams:
            for watch in self._watches.get(name, ()):
                watch.wake()

    def release(self) -> None:
        """The server stops: answer every held request now, and hold none from here on."""
        self.released = True
        for watch in self._all:
            watch.wake(is_urgent=True)
