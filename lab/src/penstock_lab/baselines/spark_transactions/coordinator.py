"""Transactions after Kafka Streams' protocol, each step a durable append of its own.

Phase one, in which a query waits: every substream is registered before the first row for it, then
what is to be committed is prepared. Phase two follows by itself: the batch is shown, a commit
record goes to every substream, and the transaction is done; the next one of the query is registered
only then. The batch shows with the first append of phase two, sooner than the protocol could show
all its substreams: what is compared with it is not flattered. Records that no recovery needs are
trimmed, so that what one reads does not grow with the batches there have been.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import msgspec

from penstock.client import Client
from penstock.errors import BadCall, PenstockError, TryAgain
from penstock.model.ids import Lsn
from penstock_lab.baselines.spark_transactions.book import TAG, Book, Step, Substream, Transaction
from penstock_lab.baselines.task_graph.protocols.transaction.own_stream import TRIM_EVERY, OwnStream

T = TypeVar("T")
_LOG = logging.getLogger("penstock_lab.baselines.spark_transactions")
AGAIN_S = 0.5
SETTLED = ("fenced", "already_marked", "unknown_query")
"""Of a query that another run has taken over, that is past the batch, or that was deleted: there
is nothing left to commit."""


class Coordinator:
    """Carries transactions out against a log server. On one event loop.

    `run` names this coordinator and no other, before or after: it numbers its records under it, so
    that one that is sent again, or held back on its way, is in the log once.
    """

    def __init__(self, client: Client, run: str, trim_every: int = TRIM_EVERY) -> None:
        self._client = client
        self._run = run
        self._numbers = itertools.count(1)
        self._book = Book()
        self._stream = OwnStream(trim_every)
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        """Of a query one step after the other: the log has them in the order of the book."""
        self._committed: dict[str, Lsn] = {}
        """The last commit record on each substream since the last trim."""
        self._trimming: asyncio.Task[None] | None = None
        self._phase_two: dict[str, asyncio.Task[None]] = {}

    async def recover(self) -> None:
        """Read what was recorded and is needed, and finish what was prepared."""
        begins = await asyncio.to_thread(self._client.trim_records, TAG, 0)
        for record in await asyncio.to_thread(self._client.records, TAG, begins):
            self._book.note(msgspec.json.decode(record.payload, type=Step), record.lsn)
            self._stream.read(record.lsn)
        for query in self._book.unfinished():
            self._finish(query)

    async def register(
        self, query: str, instance: int, batch: int, substreams: set[Substream]
    ) -> None:
        """Returns when the substreams are registered, and the transaction before is done."""
        async with self._turns[query]:
            before = self._book.newest(query)
            if before is not None and (before.instance, before.batch) != (instance, batch):
                await self.finished(query)
            missing = self._book.missing(query, instance, batch, substreams)
            if missing:
                await self._note(Step("register", query, instance, batch, tuple(sorted(missing))))

    async def prepare(self, query: str, marker: dict[str, Any]) -> None:
        """Returns when the batch will be committed, whatever happens. Asked again, it raises if the
        log has refused the commit meanwhile."""
        instance, batch = int(marker["instance"]), int(marker["batch"])
        async with self._turns[query]:
            is_prepared = self._book.is_prepared(query, instance, batch)
            if is_prepared and not self._is_refused(query):
                return
            await self.finished(query)
            if is_prepared:
                return
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
            if error.code not in SETTLED:
                raise _refused(query, one, error) from error
            _LOG.warning("batch %s of %s is not committed: %s", one.batch, query, error)
        said = msgspec.json.encode({"query": query, "batch": one.batch})
        tags = [f"committed/{stream}/{place}" for stream, place in sorted(one.substreams)]
        places = await asyncio.gather(*(self._record(tag, said) for tag in tags))
        self._committed.update(zip(tags, places, strict=True))
        await self._note(Step("done", query, one.instance, one.batch))

    async def finished(self, query: str) -> None:
        """Returns when nothing of the query that was prepared is still to be committed.

        What the log has refused is tried again first, as somebody may have acted on it; if it is
        refused again this raises, and the query gets no further.
        """
        if self._is_refused(query):
            self._finish(query)
        under_way = self._phase_two.get(query)
        if under_way is not None:
            await under_way

    def _is_refused(self, query: str) -> bool:
        """Whether phase two has ended without a commit. Nothing ends it but the log's refusal."""
        under_way = self._phase_two.get(query)
        return under_way is not None and under_way.done() and under_way.exception() is not None

    async def _note(self, step: Step) -> None:
        begun, lsn = self._stream.begin(), None
        try:
            lsn = await self._record(TAG, msgspec.json.encode(step))
            self._book.note(step, lsn)
        finally:
            self._stream.end(begun, lsn)
        if self._stream.is_due and (self._trimming is None or self._trimming.done()):
            self._trimming = asyncio.ensure_future(self._trim())

    async def _trim(self) -> None:
        """Remove what no recovery reads. In the way of no query but one that stands still."""
        old = self._stream.start_trim()
        for query in self._book.said_before(old):
            async with self._turns[query]:
                if query in self._book.said_before(old):
                    await self._note(self._book.anew(query))
        committed, self._committed = self._committed, {}
        until = self._stream.until(self._book.needed())
        for tag, place in {**committed, TAG: until}.items():
            await self._insist(self._client.trim_records, tag, place)

    async def _record(self, tag: str, payload: bytes) -> Lsn:
        append = partial(self._client.append_record, producer=self._run, seq=next(self._numbers))
        return await self._insist(append, [tag], payload)

    async def _insist(self, call: Callable[..., T], *arguments: object) -> T:
        """Until the server answers: what was prepared is committed, however long it is away."""
        while True:
            try:
                return await asyncio.to_thread(call, *arguments)
            except TryAgain as error:
                _LOG.warning("the log server is asked again: %s", error)
                await asyncio.sleep(AGAIN_S)


def _refused(query: str, one: Transaction, error: PenstockError) -> BadCall:
    refused = BadCall(
        f"batch {one.batch} of the query {query!r} was prepared by instance {one.instance} and "
        f"cannot be committed: {error.message}; none of it is visible, and the query gets no "
        "further: restore what is missing and start it again, or reset the query and give it a "
        "new checkpoint",
        code="not_committed",
        status=409,
    )
    _LOG.error("%s", refused.message)
    return refused
