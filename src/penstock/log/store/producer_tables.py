"""Producers of the store: who is remembered, and who has been silent longest."""

from __future__ import annotations

import msgspec

from penstock.log.plan import SilentProducer
from penstock.log.rules import Rules
from penstock.log.store.layout import ProducerState, RecordedState, SteadyTime
from penstock.log.store.table_reader import TableReader

STEADY = b"steady"
_decode_producer = msgspec.msgpack.Decoder(ProducerState).decode
_decode_recorded = msgspec.msgpack.Decoder(RecordedState).decode
_decode_steady = msgspec.msgpack.Decoder(SteadyTime).decode


class ProducerTables(TableReader):
    """Reads the tables of this family."""

    rules: Rules

    @property
    def steady(self) -> SteadyTime:
        stored = self.get("counters", STEADY)
        return SteadyTime() if stored is None else _decode_steady(stored)

    @property
    def steady_ms(self) -> int:
        return self.steady.steady_ms

    def put_steady(self, steady: SteadyTime) -> None:
        value = msgspec.msgpack.encode(steady)
        self.txn.put(STEADY, value, db=self.tables["counters"])

    def silent_producer(self) -> SilentProducer | None:
        key = self._silent_longest("producers", "producer_uses")
        if key is None:
            return None
        return SilentProducer(key, _decode_producer(self.get("producers", key)).heard_ms)

    def silent_recorder(self) -> SilentProducer | None:
        key = self._silent_longest("record_producers", "record_uses")
        if key is None:
            return None
        return SilentProducer(key, _decode_recorded(self.get("record_producers", key)).heard_ms)

    def _silent_longest(self, producers: str, uses: str) -> bytes | None:
        if self.txn.stat(self.tables[producers])["entries"] < self.rules.producers_max:
            return None
        with self.txn.cursor(db=self.tables[uses]) as cursor:
            return bytes(cursor.value()) if cursor.first() else None
