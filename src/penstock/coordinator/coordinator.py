"""Transactions after Kafka Streams' protocol, each step a durable append of its own.

Phase one, in which a query waits: every substream is registered before the first row for it, then
what is to be committed is prepared. Phase two follows by itself: the batch is shown, a commit
record goes to every substream, and the transaction is done; the next one of the query is registered
only then. The batch shows with the first append of phase two, sooner than the protocol could show
all its substreams: what is compared with it is not flattered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.client import Client
from penstock.coordinator.book import TAG, Book, Step, Substream, Transaction
from penstock.errors import PenstockError, TryAgain

_LOG = logging.getLogger("penstock.coordinator")
AGAIN_S = 0.5
SETTLED = ("fenced", "already_marked")


class Coordinator:
    """Carries transactions out against a log server. On one event loop."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._book = Book()
        self._phase_two: dict[str, asyncio.Task[None]] = {}

    async def recover(self) -> None:
        """Read what was recorded, and finish what was prepared."""
        for record in await asyncio.to_thread(self._client.records, TAG):
            self._book.note(msgspec.json.decode(record.payload, type=Step))
        for query in self._book.unfinished():
            self._finish(query)

    async def register(
        self, query: str, instance: int, batch: int, substreams: set[Substream]
    ) -> None:
        """Returns when the substreams are registered, and the transaction before is done."""
        before = self._book.newest(query)
        if before is not None and (before.instance, before.batch) != (instance, batch):
            await self.finished(query)
        missing = self._book.missing(query, instance, batch, substreams)
        if missing:
            await self._note(Step("register", query, instance, batch, tuple(sorted(missing))))

    async def prepare(self, query: str, marker: dict[str, Any]) -> None:
        """Returns when the batch will be committed, whatever happens."""
        instance, batch = int(marker["instance"]), int(marker["batch"])
        if self._book.is_prepared(query, instance, batch):
            return
        await self.finished(query)
        await self._note(Step("prepare", query, instance, batch, marker=marker))
        self._finish(query)

    def _finish(self, query: str) -> None:
        found = self._book.newest(query)
        assert found is not None  # it was just prepared
        self._phase_two[query] = asyncio.ensure_future(self._commit(query, found))

    async def _commit(self, query: str, one: Transaction) -> None:
        assert one.marker is not None  # it is prepared
        try:
            await self._insist(self._client.mark, query, one.marker)
        except PenstockError as error:
            # The run that took over runs the batch again, or has: there is nothing left to commit.
            # Anything else would lose what was promised, and so is the next caller's to hear.
            if error.code not in SETTLED:
                raise
            _LOG.warning("batch %s of %s is not committed: %s", one.batch, query, error)
        said = msgspec.json.encode({"query": query, "batch": one.batch})
        await asyncio.gather(
            *(
                self._record(f"committed/{stream}/{place}", said)
                for stream, place in sorted(one.substreams)
            )
        )
        await self._note(Step("done", query, one.instance, one.batch))

    async def finished(self, query: str) -> None:
        """Returns when nothing of the query that was prepared is still to be committed."""
        under_way = self._phase_two.get(query)
        if under_way is not None:
            await under_way

    async def _note(self, step: Step) -> None:
        await self._record(TAG, msgspec.json.encode(step))
        self._book.note(step)

    async def _record(self, tag: str, payload: bytes) -> None:
        await self._insist(self._client.append_record, [tag], payload)

    async def _insist(self, call: Callable[..., object], *arguments: object) -> None:
        """Until the server answers: what was prepared is committed, however long it is away."""
        while True:
            try:
                await asyncio.to_thread(call, *arguments)
                return
            except TryAgain as error:
                _LOG.warning("the log server is asked again: %s", error)
                await asyncio.sleep(AGAIN_S)
