"""A log that exists in memory only: what queries have read and written, told by a test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa

from penstock.client import Client
from penstock.model.ids import BatchId, Instance, Lsn
from penstock.model.query_answers import MarkerLine
from penstock.model.schema import schema_of


@dataclass
class Past:
    """Answers what the oracle asks of a client."""

    streams: dict[str, tuple[pa.Schema, list[tuple[int, pa.Table]]]] = field(default_factory=dict)
    marked: dict[str, list[MarkerLine]] = field(default_factory=dict)
    lsn: int = 0

    def create(self, stream: str, ddl: str) -> None:
        self.streams[stream] = (schema_of(ddl), [])

    def append(self, stream: str, rows: Sequence[dict[str, Any]]) -> int:
        self.lsn += 1
        schema, commits = self.streams[stream]
        commits.append((self.lsn, pa.Table.from_pylist(list(rows), schema=schema)))
        return self.lsn

    def mark(
        self, stage: str, rows: Sequence[dict[str, Any]], instance: int = 1, **positions: int
    ) -> int:
        """A batch that has read up to `positions` and written `rows`."""
        lsn = self.append(stage, rows) if rows else self._step()
        before = self.marked.setdefault(stage, [])
        before.append(
            MarkerLine(
                Lsn(lsn),
                BatchId(len(before)),
                Instance(instance),
                0,
                {stream: Lsn(position) for stream, position in positions.items()},
                "append",
                len(rows),
            )
        )
        return lsn

    def client(self) -> Client:
        return cast(Client, self)

    # What a client answers

    def markers(self, query: str) -> list[MarkerLine]:
        return self.marked.get(query, [])

    def schema(self, stream: str) -> pa.Schema:
        return self.streams[stream][0]

    def position(self, stream: str, *, at: str) -> int:
        commits = self.streams[stream][1]
        return commits[-1][0] if at == "latest" and commits else 0

    def read(self, stream: str, after: int, until: int) -> pa.Table:
        schema, commits = self.streams[stream]
        rows = [table for lsn, table in commits if after < lsn <= until]
        return pa.concat_tables([schema.empty_table(), *rows])

    def _step(self) -> int:
        self.lsn += 1
        return self.lsn
