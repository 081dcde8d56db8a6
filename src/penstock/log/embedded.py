"""The embedded log: one folder on this machine, one server, LMDB under it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Damaged
from penstock.log import repair
from penstock.log.contract import Operation
from penstock.log.folder import Folder, check_whole
from penstock.log.layout import TABLES, Tables
from penstock.log.store import StoreView
from penstock.log.writer import OnVisible, Writer
from penstock.model.ids import StreamName
from penstock.settings import Settings

_LOG = logging.getLogger("penstock.log")
READERS_MAX = 512


class EmbeddedLog:
    """The log of one folder. Every method may be called from any thread."""

    def __init__(
        self, folder: Folder, env: lmdb.Environment, tables: Tables, settings: Settings,
        clock: Clock,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.settings = settings
        self.cut: repair.Cut | None = None
        self._env = env
        self._tables = tables
        self._listeners: list[OnVisible] = []
        self._writer = Writer(env, tables, folder.path, settings, clock, self._visible)

    @staticmethod
    def open(
        path: Path,
        settings: Settings | None = None,
        clock: Clock = SYSTEM_CLOCK,
        *,
        cut_damaged_tail: bool = False,
    ) -> EmbeddedLog:
        """Open or make the log in `path`.

        1. lock the folder, so that no other server touches what follows;
        2. refuse a newer format before reading what it may mean;
        3. refuse a file that has been cut short before mapping it;
        4. verify the end of the log, where a crash or a bad disk shows first.
        """
        settings = settings or Settings()
        folder = Folder.open(path)
        try:
            data = folder.store / "data.mdb"
            if data.exists():
                check_whole(data)
            env = _open_env(folder.store, settings)
            tables = Tables(env)
            cut = _verify(env, tables, settings, clock, cut_damaged_tail=cut_damaged_tail)
            folder.write_format()
        except BaseException:
            folder.close()
            raise
        log = EmbeddedLog(folder, env, tables, settings, clock)
        log.cut = cut
        return log

    def submit(self, operation: Operation) -> Future[Any]:
        """Queue an operation; its future is answered once it is durable, or with its refusal."""
        return self._writer.submit(operation)

    def run(self, operation: Operation) -> Any:
        """Submit and wait."""
        return self.submit(operation).result()

    @contextmanager
    def reading(self) -> Iterator[StoreView]:
        """One consistent state of the log; what it gives out by reference dies at the end."""
        with self._env.begin(buffers=True) as txn:
            yield StoreView(txn, self._tables)

    def on_visible(self, listener: OnVisible) -> None:
        """Call `listener` from the writer's thread with the streams that show something new."""
        self._listeners.append(listener)

    def _visible(self, streams: frozenset[StreamName]) -> None:
        for listener in self._listeners:
            listener(streams)

    @property
    def commits(self) -> int:
        """Syncs so far; fewer than `operations` when callers shared them."""
        return self._writer.commits

    @property
    def operations(self) -> int:
        return self._writer.operations

    def close(self) -> None:
        """Finish what is queued, then release the folder."""
        self._writer.close()
        self._env.close()
        self.folder.close()


def _open_env(store: Path, settings: Settings) -> lmdb.Environment:
    """No write map, so that a full disk is an error and not a signal; every commit syncs."""
    store.mkdir(exist_ok=True)
    try:
        return lmdb.open(
            str(store),
            map_size=settings.map_bytes,
            max_dbs=len(TABLES),
            max_readers=READERS_MAX,
            writemap=False,
            sync=True,
            metasync=True,
            readahead=True,
        )
    except (lmdb.InvalidError, lmdb.CorruptedError, lmdb.VersionMismatchError) as error:
        raise Damaged(
            f"the log in {store} cannot be opened: {error}; restore the data folder from a backup",
            code="damaged",
        ) from error


def _verify(
    env: lmdb.Environment,
    tables: Tables,
    settings: Settings,
    clock: Clock,
    *,
    cut_damaged_tail: bool,
) -> repair.Cut | None:
    with env.begin(buffers=True) as txn:
        first = repair.first_damaged(
            StoreView(txn, tables), settings.verify_entries_max, settings.verify_bytes_max
        )
    if first is None:
        return None
    if not cut_damaged_tail:
        env.close()
        raise repair.refusal(first)
    cut = repair.cut_from(env, tables, first, settings, clock)
    _LOG.warning("%s", cut)
    return cut
