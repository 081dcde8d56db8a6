"""The embedded log: one folder on this machine, one server, LMDB under it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import lmdb

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Damaged
from penstock.log.backends.embedded.writer import Writer
from penstock.log.backends.local import READERS_MAX, LocalLog
from penstock.log.backends.outcomes import Given
from penstock.log.decide.records import check_record
from penstock.log.operations import Operation
from penstock.log.store import repair
from penstock.log.store.folder import Folder, check_whole
from penstock.log.store.layout import TABLES, Tables
from penstock.log.store.room import map_size
from penstock.log.store.view import StoreView
from penstock.settings.server import Settings

_LOG = logging.getLogger("penstock.log")


class EmbeddedLog(LocalLog):
    """The log of one folder: what is queued up is written by one thread, with one sync."""

    def __init__(
        self, folder: Folder, env: lmdb.Environment, tables: Tables, settings: Settings,
        clock: Clock,
    ) -> None:  # fmt: skip
        super().__init__(folder, env, tables, settings, clock)
        self._writer = Writer(env, tables, folder.path, settings, clock, self._tell)

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
        return self.submit_together((operation,))[0]

    def submit_together(self, operations: Sequence[Operation]) -> list[Future[Any]]:
        """Queue operations side by side: unless their group is full they share a sync."""
        for operation in operations:
            check_record(operation, self.settings.entry_bytes_max)
        return self._writer.submit(operations)

    def submit_early(self, operations: Sequence[Operation]) -> list[Future[Given]]:
        """Queue appends side by side; those that a marker must name are answered once applied."""
        return self._writer.submit_early(operations)

    @property
    def about(self) -> str:
        answers = "an answer means that it is synced, unless a query asked for early ones"
        return f"the log is embedded, in {self.folder.path}; {answers}"

    @property
    def commits(self) -> int:
        """Syncs so far; fewer than `operations` when callers shared them."""
        return self._writer.commits

    @property
    def operations(self) -> int:
        return self._writer.operations

    def close(self) -> None:
        self._writer.close()
        self._env.close()
        self.folder.close()


def _open_env(store: Path, settings: Settings) -> lmdb.Environment:
    """No write map, so that a full disk is an error and not a signal; every commit syncs."""
    store.mkdir(mode=0o700, exist_ok=True)
    try:
        return lmdb.open(
            str(store),
            map_size=map_size(settings),
            max_dbs=len(TABLES),
            max_readers=READERS_MAX,
            writemap=False,
            sync=True,
            metasync=True,
            readahead=True,
            mode=0o600,
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
        damage = repair.first_damaged(
            StoreView(txn, tables), settings.verify_entries_max, settings.verify_bytes_max
        )
    if damage is None:
        return None
    if not cut_damaged_tail:
        env.close()
        raise repair.refusal(damage)
    cut = repair.cut_from(env, tables, damage.first, clock)
    _LOG.warning("%s", cut)
    return cut
