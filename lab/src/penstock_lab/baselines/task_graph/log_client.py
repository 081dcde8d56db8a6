"""The log from another process: the calls of `log_process`, as a task makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from penstock.errors import PenstockError, from_wire
from penstock.log.contract import Entry
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.socket_calls import Calling, call_to

PAGE_BYTES = 4 << 20
OnEntries: TypeAlias = Callable[[list[Entry]], None]
decode_entries = msgspec.msgpack.Decoder(list[Entry]).decode


class LogClient:
    """A connection to the process of a log; for one event loop."""

    def __init__(self, calling: Calling) -> None:
        self._calling = calling
        self._calling.on_push = self._pushed
        self._readers: dict[int, OnEntries] = {}
        self.lost = calling.lost
        """Also when the log's process can push no more; `check` says why."""
        self._failure: PenstockError | None = None

    @staticmethod
    async def open(path: Path) -> LogClient:
        return LogClient(await call_to(path))

    def append(
        self,
        tags: Sequence[str],
        payload: bytes,
        *,
        expect: tuple[str, int] | None = None,
        producer: str | None = None,
        instance: Instance | None = None,
        seq: int | None = None,
    ) -> asyncio.Future[Lsn]:
        """Sent in the order of the calls; answered with the entry's place once it is durable."""
        return self._calling.call("append", tags, payload, expect, producer, instance, seq)

    async def tail(self, tag: str) -> Lsn:
        """The last entry with the tag; 0 for none."""
        return Lsn(await self._calling.call("tail", tag))

    async def entry(self, lsn: Lsn) -> Entry:
        return decode_entries(await self._calling.call("entry", lsn))[0]

    async def aux(self, lsn: Lsn) -> bytes | None:
        aux: bytes | None = await self._calling.call("aux", lsn)
        return aux

    async def set_aux(self, lsn: Lsn, aux: bytes) -> None:
        await self._calling.call("set_aux", lsn, aux)

    async def page(
        self, tag: str, start: int, until: int, bytes_max: int = PAGE_BYTES
    ) -> list[Entry]:
        """Entries with the tag from `start` to `until`, both included, as many as fit; from 0 on,
        those that are there. From a place on where some are gone it is refused as `trimmed`."""
        return decode_entries(await self._calling.call("page", tag, start, until, bytes_max))

    async def trim(self, tag: str, until: int) -> Lsn:
        """Remove the tag's records up to a place; after which place it is whole. 0 only asks."""
        return Lsn(await self._calling.call("trim", tag, until))

    async def subscribe(self, tags: Sequence[str], after: int, reader: OnEntries) -> None:
        """Call `reader` with the entries of the tags after a place, in order, as they come. If they
        cannot be read any more, the connection is lost."""
        number = len(self._readers) + 1
        self._readers[number] = reader
        await self._calling.call("subscribe", number, tags, after)

    def hold(self, reader: OnEntries, is_held: bool) -> None:
        """Have nothing more pushed to who subscribed, or go on; what is on its way still comes."""
        for number, each in self._readers.items():
            if each == reader:
                self._calling.tell("hold", number, is_held)

    def check(self) -> None:
        """Raises what ended a subscription, if something did."""
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self._calling.close()

    def _pushed(self, body: list[Any]) -> None:
        number, entries, *failed = body
        if failed:
            self._failure = from_wire(failed[0], failed[0]["status"])
        else:
            self._readers[number](decode_entries(entries))
