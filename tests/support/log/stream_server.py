"""A server of a log in JetStream without JetStream: messages are brought to it by hand."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import lmdb

from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.codec import Message, OperationId, messages
from penstock.log.backends.jetstream.replay import Delivered, Outcome
from penstock.log.backends.outcomes import News
from penstock.log.operations import Operation
from penstock.log.store.layout import TABLES, Tables
from penstock.model.ids import Lsn
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock

PUBLISHER = b"publish1"


def published(*operations: Operation) -> list[Message]:
    return [
        message
        for number, operation in enumerate(operations, 1)
        for message in messages(OperationId(PUBLISHER, number), operation)
    ]


class Server:
    """The applier of one server over a store of its own, fed as its stream would."""

    def __init__(self, folder: Path) -> None:
        self.env = lmdb.open(str(folder), max_dbs=len(TABLES), map_size=1 << 26, sync=False)
        self.tables = Tables(self.env)
        self.outcomes: list[Outcome] = []
        self.applier = Applier(
            self.env, self.tables, Settings(), ManualClock(), Lsn(0), self._applied, lambda _: False
        )

    def _applied(self, _: News, outcomes: list[Outcome]) -> None:
        self.outcomes += outcomes

    def apply(self, brought: list[Message]) -> dict[int, Any]:
        """Bring the messages as one group; what each operation was answered, by its number."""
        for lsn, message in enumerate(brought, self.applier.applied + 1):
            self.applier.put(Delivered(Lsn(lsn), 1_000, message.subject, message.body))
        last = self.applier.applied + len(brought)
        self.applier.start()
        for _ in range(5_000):
            if self.applier.applied >= last:
                break
            threading.Event().wait(0.002)
        assert self.applier.applied == last, "the messages are not applied"
        self.applier.close()
        return {outcome.id.number: outcome.answer for outcome in self.outcomes}

    def content(self) -> dict[str, list[tuple[bytes, bytes]]]:
        with self.env.begin() as txn:
            return {name: list(txn.cursor(db=self.tables[name])) for name in TABLES}
