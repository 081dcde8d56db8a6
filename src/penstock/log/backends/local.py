"""The part that every log has on this machine: a folder with a store that readers look into."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import lmdb

from penstock.clock import Clock
from penstock.log.backends.keep_running import going_on
from penstock.log.backends.outcomes import Given, News, OnMarked, OnVisible, as_given
from penstock.log.operations import Operation
from penstock.log.reading.subscription import OnNews, Subscription, Subscriptions
from penstock.log.store.folder import Folder
from penstock.log.store.layout import Tables
from penstock.log.store.repair import Cut
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, Lsn
from penstock.settings.server import Settings

READERS_MAX = 512


class LocalLog(ABC):
    """The reading side of a log, and the door to its writing side, wherever that is.

    Every method may be called from any thread.
    """

    def __init__(
        self, folder: Folder, env: lmdb.Environment, tables: Tables, settings: Settings,
        clock: Clock,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.settings = settings
        self.clock = clock
        self.cut: Cut | None = None
        self._env = env
        self._tables = tables
        self._listeners: list[OnVisible] = []
        self._marker_listeners: list[OnMarked] = []
        self._subscriptions = Subscriptions(self.reading, clock)

    @abstractmethod
    def submit(self, operation: Operation) -> Future[Any]:
        """Queue an operation; its future is answered once it is durable, or with its refusal."""

    def submit_together(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        """Queue operations that come together; a log that writes in groups makes them one."""
        return [self.submit(operation) for operation in operations]

    def submit_early(self, operations: Sequence[Operation]) -> list[Future[Given]]:
        """Queue appends that come together and may be answered before they are durable, where the
        log does that and they allow it. Each answer says whether it was: then what was appended may
        yet be lost, and a marker that names it must name the start that answered."""
        return [as_given(future) for future in self.submit_together(operations)]

    @abstractmethod
    def close(self) -> None:
        """Finish what is queued, then release the folder."""

    @property
    @abstractmethod
    def about(self) -> str:
        """The keeper of the log and what durable means there, in a sentence for the operator."""

    def run(self, operation: Operation) -> Any:
        """Submit and wait."""
        return self.submit(operation).result()

    @contextmanager
    def reading(self) -> Iterator[StoreView]:
        """One consistent state of the log; what it gives out by reference dies at the end."""
        with self._env.begin(buffers=True) as txn:
            yield StoreView(txn, self._tables)

    def copy_to(self, file: int) -> None:
        """Write a copy of the store, as it is at one moment, to an open file; appends go on."""
        self._env.copyfd(file)

    def subscribe(
        self, tags: Iterable[str], after: Lsn = BEFORE_ALL, on_news: OnNews | None = None
    ) -> Subscription:
        """Entries with any of the tags after a place, as they come; see `Subscription`."""
        return self._subscriptions.subscribe(tags, after, on_news)

    def on_visible(self, listener: OnVisible) -> None:
        """Call `listener` from the writer's thread with the streams that show something new."""
        self._listeners.append(listener)

    def on_marked(self, listener: OnMarked) -> None:
        """Call `listener` from the writer's thread with every marker once it is durable."""
        self._marker_listeners.append(listener)

    def _tell(self, news: News) -> None:
        """Wake who waits for what a transaction has changed; it can be read by now.

        It does not fail: what was written is to be answered, whoever cannot be told of it.
        """
        if news.settles_any:
            self._subscriptions.wake_all()
        self._subscriptions.notify(news.tags, news.last)
        if news.streams:
            streams = frozenset(news.streams)
            for listener in self._listeners:
                with going_on("telling of rows that are visible"):
                    listener(streams)
        for query, payload in news.markers if self._marker_listeners else ():
            for marker_listener in self._marker_listeners:
                with going_on("telling of a marker"):
                    marker_listener(query, payload)
