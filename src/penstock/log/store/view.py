"""The store seen through one transaction: the `View` that decisions and readers look at."""

from __future__ import annotations

import lmdb

from penstock.log.rules import Rules
from penstock.log.store.consumer_tables import ConsumerTables
from penstock.log.store.layout import Tables
from penstock.log.store.origin_tables import OriginTables
from penstock.log.store.producer_tables import ProducerTables
from penstock.log.store.query_tables import QueryTables
from penstock.log.store.start_tables import StartTables
from penstock.log.store.stream_tables import StreamTables
from penstock.log.view import Place
from penstock.model.ids import Lsn

NEWEST_RULES = Rules()


class StoreView(
    StartTables, StreamTables, OriginTables, ProducerTables, QueryTables, ConsumerTables
):
    """One transaction's state. Payload views die with the transaction; copy what must live on."""

    def __init__(
        self,
        txn: lmdb.Transaction,
        tables: Tables,
        wall_ms: int = 0,
        places: tuple[Place, ...] | None = None,
        rules: Rules = NEWEST_RULES,
    ) -> None:
        """`places` are those the operation already has; without them the next ones are given."""
        self.txn = txn
        self.tables = tables
        self._wall_ms = wall_ms
        self._places = places
        self.rules = rules

    def places(self, count: int) -> tuple[Place, ...]:
        if self._places is not None and count > 0:
            assert count == len(self._places), f"{count} entries for {len(self._places)} places"
            return self._places
        first, now_ms = self.next_lsn, self.now_ms
        return tuple(Place(Lsn(first + each), now_ms) for each in range(count))

    @property
    def now_ms(self) -> int:
        return max(self._wall_ms, self.counter("arrived_at_ms", 0))
