"""The state of a task: small tables in memory, and which of their keys have changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock_lab.baselines.task_graph.messages import Change

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(dict[str, dict[int, Any]]).decode


class State:
    """Tables of values by whole numbers. A value is never changed in place: put a new one."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[int, Any]] = {}
        self._changed: dict[tuple[str, int], Any] = {}

    def table(self, name: str) -> dict[int, Any]:
        """To look at; changes go through `put` and `drop`."""
        return self._tables.setdefault(name, {})

    def put(self, table: str, key: int, value: Any) -> None:
        self.table(table)[key] = value
        self._changed[table, key] = value

    def drop(self, table: str, key: int) -> None:
        """The key may be missing."""
        self.table(table).pop(key, None)
        self._changed[table, key] = None

    def take_changes(self) -> list[Change]:
        """Changes since the last call, each key once, with its last value."""
        taken: list[Change] = [(table, key, value) for (table, key), value in self._changed.items()]
        self._changed.clear()
        return taken

    def replay(self, changes: Iterable[Change]) -> None:
        """Apply changes of an earlier instance; they are not changes of this one."""
        for table, key, value in changes:
            if value is None:
                self.table(table).pop(key, None)
            else:
                self.table(table)[key] = value

    def snapshot(self) -> bytes:
        """All tables, as bytes that `restore` takes."""
        return _encode(self._tables)

    def restore(self, snapshot: bytes) -> None:
        self._tables = _decode(snapshot)
        self._changed.clear()

    def __len__(self) -> int:
        return sum(len(table) for table in self._tables.values())
