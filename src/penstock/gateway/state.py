"""What every route needs: the log, the settings, the threads, the held requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pyarrow as pa
from aiohttp import web

from penstock.clock import Clock
from penstock.gateway.waiting import Held, UnderWay
from penstock.log.appends import need_stream
from penstock.log.contract import Operation, StreamRecord
from penstock.log.embedded import EmbeddedLog
from penstock.log.store import StoreView
from penstock.model.ids import StreamName, stream_name
from penstock.settings import Settings

T = TypeVar("T")


class Gateway:
    """One server's state. Used on its event loop only, but for what `in_thread` runs."""

    def __init__(self, log: EmbeddedLog, token: str, clock: Clock) -> None:
        self.log = log
        self.token = token
        self.clock = clock
        self.started_at_ms = clock.wall_ms()
        self.held = Held()
        self.under_way = UnderWay()
        self.stopping = False
        self.bodies = asyncio.Semaphore(log.settings.ingest_requests_max)
        self._threads = ThreadPoolExecutor(log.settings.fetch_threads, "penstock-gateway")
        self._schemas: dict[int, pa.Schema] = {}
        self._turns: dict[int, int] = {}
        log.on_visible(self.held.notify)

    @property
    def settings(self) -> Settings:
        return self.log.settings

    async def run(self, operation: Operation) -> Any:
        """Carry an operation out; durable when this returns."""
        return await asyncio.wrap_future(self.log.submit(operation))

    async def in_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Run what takes long beside the event loop; beyond `fetch_threads` it queues."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    def stream(self, name: StreamName) -> StreamRecord:
        """The stream, or `unknown_stream`."""
        with self.log.reading() as view:
            return need_stream(view, name)

    def stream_in(self, request: web.Request, view: StoreView | None = None) -> StreamRecord:
        """The stream that the request's path names."""
        name = stream_name(request.match_info["stream"])
        return self.stream(name) if view is None else need_stream(view, name)

    def schema(self, stream: StreamRecord) -> pa.Schema:
        """The stream's schema, read once: a stream never changes it."""
        if stream.id not in self._schemas:
            self._schemas[stream.id] = pa.ipc.read_schema(pa.py_buffer(stream.schema))
        return self._schemas[stream.id]

    def next_turn(self, stream: StreamRecord) -> int:
        """Whose turn it is among the substreams for a request that names neither one nor a key."""
        turn = self._turns.get(stream.id, 0)
        self._turns[stream.id] = (turn + 1) % stream.substreams
        return turn

    def hold_s(self, wait_ms: int) -> float:
        return min(wait_ms, self.settings.hold_ms_max) / 1000

    def close(self) -> None:
        self._threads.shutdown(wait=True)


GATEWAY: web.AppKey[Gateway] = web.AppKey("gateway", Gateway)


def gateway_of(request: web.Request) -> Gateway:
    return request.app[GATEWAY]
