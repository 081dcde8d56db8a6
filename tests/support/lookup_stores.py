"""Stores for tests of look-ups: one in memory that a test holds, and a server that says nothing."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.lookup.store import Key, Row


class HeldStore:
    """A store in memory; a test can hold its answers, and have them fail."""

    columns = "value string"

    def __init__(self, absent: Sequence[Key] = ()) -> None:
        self.absent = set(absent)
        self.asked: list[list[Key]] = []
        self.errors: list[Exception] = []
        """Raised by the next requests, one each."""
        self.open = threading.Event()
        self.open.set()
        self.began = threading.Semaphore(0)
        self.connections = 0
        self.values: dict[Key, str] = {}

    def __repr__(self) -> str:
        return "HeldStore"

    def connect(self, timeout_s: float) -> HeldConnection:
        self.connections += 1
        return HeldConnection(self)


@dataclass
class HeldConnection:
    store: HeldStore

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        self.store.asked.append(list(keys))
        self.store.began.release()
        self.store.open.wait()
        if self.store.errors:
            raise self.store.errors.pop(0)
        return [self._row(key) for key in keys]

    def _row(self, key: Key) -> Row | None:
        if key in self.store.absent:
            return None
        return (self.store.values.get(key, f"value of {key!s}"),)

    def close(self) -> None:
        self.store.connections -= 1


@dataclass
class SilentServer:
    """Accepts connections and never says a word; `accepted` keeps them open."""

    accepted: list[socket.socket] = field(default_factory=list)

    def __enter__(self) -> SilentServer:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self) -> None:
        while True:
            try:
                self.accepted.append(self._listening.accept()[0])
            except OSError:
                return

    def __exit__(self, *_: object) -> None:
        # Closing alone leaves a thread in accept on Linux.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in self.accepted:
            connection.close()
