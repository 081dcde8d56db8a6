"""Fetches what a query has committed, marker by marker, in the form the oracle wants."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.client import Client
from penstock_lab.demo.oracle import Commit
from penstock_lab.demo.queries import Step


class Marked(msgspec.Struct, frozen=True):
    """A marker as the server lists it: a batch, and how far it had read each stream."""

    lsn: int
    batch: int
    positions: dict[str, int]
    arrived_at_ms: int = 0
    rows: int = 0


def markers(client: Client, query: str) -> list[Marked]:
    """Every marker of the query, in batch order."""
    return msgspec.convert(client.markers(query), list[Marked])


def commits(client: Client, step: Step, marked: list[Marked]) -> Iterator[Commit]:
    """The rows behind every marker. A batch read what lies between its position and the last's."""
    before = client.position(step.reads, at="earliest")
    for marker in marked:
        position = marker.positions[step.reads]
        yield Commit(
            marker.batch,
            marker.lsn,
            read=client.read(step.reads, before, position),
            # A marker is itself the position of the rows it shows, and no other commit is there.
            wrote=client.read(step.name, marker.lsn - 1, marker.lsn),
        )
        before = position
