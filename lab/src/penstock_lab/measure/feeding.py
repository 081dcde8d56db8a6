"""Generated or recorded events in the log, a commit at a time, so that a batch is one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from penstock.client import Client
from penstock_lab.queries import Query
from penstock_lab.workloads.nexmark import Nexmark
from penstock_lab.workloads.seeded import Generator
from penstock_lab.workloads.traffic import stamped

SUBSTREAMS = 2
SENT_FROM_US = 1_800_000_000_000_000
SENT_EVERY_US = 500


class Source(Protocol):
    """Numbered events, cut into commits by whoever feeds them."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The streams, each with the column it is routed by."""
        ...

    def commit(self, first: int, count: int) -> dict[str, pa.RecordBatch]:
        """The rows of a range of events by stream, with `sent_at`; a stream may have none."""
        ...


@dataclass(frozen=True)
class NexmarkSource:
    """Persons, auctions and bids; an event is a row of one of them."""

    nexmark: Nexmark

    @property
    def keys(self) -> Mapping[str, str]:
        return {"persons": "id", "auctions": "id", "bids": "auction"}

    def commit(self, first: int, count: int) -> dict[str, pa.RecordBatch]:
        rows = self.nexmark.events(first, count)._asdict()
        places = self.nexmark.row_numbers(first, count)._asdict()
        return {
            name: stamped(rows[name], SENT_FROM_US + places[name] * SENT_EVERY_US) for name in rows
        }


@dataclass(frozen=True)
class OneStream:
    """A generator, or a recording, whose events are the rows of one stream."""

    stream: str
    key: str
    generator: Generator

    @property
    def keys(self) -> Mapping[str, str]:
        return {self.stream: self.key}

    def commit(self, first: int, count: int) -> dict[str, pa.RecordBatch]:
        places = np.arange(first, first + count, dtype=np.int64)
        rows = self.generator.events(first, count)
        return {self.stream: stamped(rows, SENT_FROM_US + places * SENT_EVERY_US)}


class Feed:
    """Appends the commits of some sources in order, each of so many events of each source."""

    def __init__(self, client: Client, sources: Sequence[Source], events: int) -> None:
        """Creates the streams too; `events` is how many of each source a commit has."""
        self._client = client
        self._sources = sources
        self._events = events
        self._done = 0
        for source in sources:
            for stream, rows in source.commit(0, 0).items():
                client.create(stream, rows.schema, substreams=SUBSTREAMS, key=source.keys[stream])

    def append(self, commits: int) -> None:
        for _ in range(commits):
            for source in self._sources:
                for stream, rows in source.commit(self._done * self._events, self._events).items():
                    self._client.append(stream, rows)
            self._done += 1


def create_outputs(client: Client, query: Query, streams: Mapping[str, str] | None = None) -> None:
    """The streams the query's stages write."""
    for stage in query.stages:
        name = (streams or {}).get(stage.name, stage.name)
        client.create(name, stage.columns, substreams=SUBSTREAMS, key=stage.route or None)
