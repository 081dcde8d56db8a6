"""Stores that look-ups go to: two small interfaces, which Redis has and others can have.

A store is described in the driver and travels to Python workers, so it must be picklable and hold
no connection. A worker asks it for connections, one for each request in flight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from penstock.prefetch.value_cache import Row

Key: TypeAlias = "str | int | bytes"
"""A key as the column has it; null is never looked up."""

__all__ = ["Key", "Row", "Store", "StoreConnection"]


class StoreConnection(Protocol):
    """A connection, used by one thread at a time."""

    def get_many(self, keys: Sequence[Key]) -> Sequence[Row | None]:
        """The rows of these keys in their order, None where the store has nothing.

        A row is a tuple in the order of the store's columns. Raise `penstock.TryAgain`, OSError or
        TimeoutError for what may go better in a moment: the request is then made again on a new
        connection. Any other error fails the query.
        """
        ...

    def close(self) -> None:
        """Let go of the connection, which may be broken."""
        ...


@runtime_checkable
class Store(Protocol):
    """A description of a store, and the way to it from a worker."""

    @property
    def columns(self) -> str:
        """The columns that a value has, as Spark's DDL: `campaign_id string, price double`."""
        ...

    def connect(self, timeout_s: float) -> StoreConnection:
        """Open a connection on which nothing takes longer than `timeout_s`."""
        ...
