"""The log's two backends behind one face: several clients of one log, for the contract suite."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Protocol

from penstock.clock import Clock
from penstock.log import invariants
from penstock.log.address import log_address
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.jetstream.log import JetStreamLog
from penstock.log.backends.local import LocalLog
from penstock.log.store.layout import TABLES
from penstock.log.store.view import StoreView
from penstock.model.ids import Lsn
from penstock.settings.server import Settings

CAUGHT_UP_S = 120.0


class Backend(Protocol):
    """One log with `clients`, each of which may be used from any thread."""

    clients: list[LocalLog]

    def settle(self) -> None:
        """Until every client sees what any of them was answered."""
        ...

    def reopen(self, client: int) -> None:
        """Close a client's server and open it again."""
        ...

    def rebuild(self, client: int) -> None:
        """The same with its folder deleted between, where the log is not in that folder."""
        ...

    def purge(self, client: int) -> None:
        """Let a server purge what was trimmed, where that is a step of its own."""
        ...

    def check(self) -> None:
        """The invariants hold on every server, and all hold the same."""
        ...

    def close(self) -> None: ...


class EmbeddedBackend:
    """Both clients are callers of one server: there is only one."""

    def __init__(self, folder: Path, clock: Clock, settings: Settings | None = None) -> None:
        self._folder = folder
        self._clock = clock
        self._settings = settings
        self.clients: list[LocalLog] = []
        self._open()

    def _open(self) -> None:
        log = EmbeddedLog.open(self._folder, self._settings, clock=self._clock)
        self.clients = [log, log]

    def settle(self) -> None:
        pass

    def reopen(self, client: int) -> None:
        self.clients[client].close()
        self._open()

    rebuild = reopen

    def purge(self, client: int) -> None:
        pass

    def check(self) -> None:
        invariants.check(self.clients[0])

    def close(self) -> None:
        self.clients[0].close()


class JetStreamBackend:
    """Two servers with a folder each, and one stream of a cluster of three."""

    def __init__(self, folder: Path, url: str, name: str, settings: Settings | None = None) -> None:
        self._folders = [folder / "a", folder / "b"]
        self._settings = settings
        self._address = log_address(f"{url}/{name}")
        self.clients: list[LocalLog] = [self._open(path) for path in self._folders]

    def _open(self, path: Path) -> JetStreamLog:
        return JetStreamLog.open(path, self._address, self._settings)

    def settle(self) -> None:
        last = max(end_of(client) for client in self.clients)
        for client in self.clients:
            wait_for(client, last)

    def reopen(self, client: int) -> None:
        self.clients[client].close()
        self.clients[client] = self._open(self._folders[client])

    def rebuild(self, client: int) -> None:
        self.clients[client].close()
        shutil.rmtree(self._folders[client])
        self.clients[client] = self._open(self._folders[client])

    def purge(self, client: int) -> None:
        self.settle()
        log = self.clients[client]
        assert isinstance(log, JetStreamLog)
        log.purge(0)

    def check(self) -> None:
        self.settle()
        for client in self.clients:
            invariants.check(client)
        first, second = (content(client) for client in self.clients)
        differ = [name for name in TABLES if first[name] != second[name]]
        assert not differ, f"the servers differ in {differ}"

    def close(self) -> None:
        for client in self.clients:
            client.close()


def end_of(log: LocalLog) -> Lsn:
    with log.reading() as view:
        return Lsn(view.next_lsn - 1)


def wait_for(log: LocalLog, lsn: int) -> None:
    until = time.monotonic() + CAUGHT_UP_S
    while end_of(log) < lsn:
        assert time.monotonic() < until, f"{end_of(log)} of {lsn} after {CAUGHT_UP_S} s"
        time.sleep(0.001)


def content(log: LocalLog) -> dict[str, dict[bytes, bytes]]:
    """Everything a server's store holds."""
    with log.reading() as view:
        return {name: _table(view, name) for name in TABLES}


def _table(view: StoreView, name: str) -> dict[bytes, bytes]:
    with view.txn.cursor(db=view.tables[name]) as cursor:
        return {bytes(key): bytes(value) for key, value in cursor}
