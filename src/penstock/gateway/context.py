"""What every route needs: the log, the settings, the threads, the held requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pyarrow as pa
from aiohttp import web

from penstock.admission.hold import Held, UnderWay
from penstock.admission.read_positions import Readings
from penstock.clock import Clock
from penstock.errors import PenstockError
from penstock.log.backends.local import LocalLog
from penstock.log.decide.need import need_stream
from penstock.log.operations import Operation
from penstock.log.retention.collector import Collector
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import StreamName, stream_name
from penstock.settings.server import Settings

T = TypeVar("T")
_LOG = logging.getLogger("penstock.gateway")


class Gateway:
    """One server's state. Used on its event loop only, but for what `in_thread` runs."""

    def __init__(self, log: LocalLog, token: str, clock: Clock) -> None:
        self.log = log
        self.token = token
        self.clock = clock
        self.started_at_ms = clock.wall_ms()
        self.held = Held()
        self.under_way = UnderWay()
        self.stopping = False
        self.bodies = asyncio.Semaphore(log.settings.ingest_requests_max)
        self._threads = ThreadPoolExecutor(log.settings.fetch_threads, "penstock-gateway")
        self._schemas: dict[tuple[int, int], pa.Schema] = {}
        self._turns: dict[int, int] = {}
        self.readings = Readings(clock)
        self.collector = Collector(log, clock)
        log.on_visible(self.held.notify)

    @property
    def settings(self) -> Settings:
        return self.log.settings

    async def run(self, operation: Operation) -> Any:
        """Carry an operation out; durable when this returns."""
        return await asyncio.wrap_future(self.log.submit(operation))

    def run_behind(self, operation: Operation) -> None:
        """Carry out an operation that nobody waits for; if it is refused, the next one may not."""
        try:
            self.log.submit(operation).add_done_callback(_say_if_refused)
        except PenstockError as error:
            _LOG.info("not kept: %s", error)

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
        """The stream's schema as the record has it."""
        return self.version(stream, len(stream.versions))

    def version(self, stream: StreamRecord, version: int) -> pa.Schema:
        """A schema that the stream has or had, read once."""
        key = (stream.id, version)
        if key not in self._schemas:
            message = (*stream.versions, stream.schema)[version]
            self._schemas[key] = pa.ipc.read_schema(pa.py_buffer(message))
        return self._schemas[key]

    def next_turn(self, stream: StreamRecord) -> int:
        """Whose turn it is among the substreams for a request that names neither one nor a key."""
        turn = self._turns.get(stream.id, 0) % stream.substreams
        self._turns[stream.id] = (turn + 1) % stream.substreams
        return turn

    def hold_s(self, wait_ms: int) -> float:
        return min(wait_ms, self.settings.hold_ms_max) / 1000

    def close(self) -> None:
        self._threads.shutdown(wait=True)


def _say_if_refused(done: Future[Any]) -> None:
    error = done.exception()
    if error is not None:
        _LOG.info("not kept: %s", error)


GATEWAY: web.AppKey[Gateway] = web.AppKey("gateway", Gateway)


def gateway_of(request: web.Request) -> Gateway:
    return request.app[GATEWAY]
