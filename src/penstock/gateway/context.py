"""The state of a server that its routes share: log, settings, threads, held requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from aiohttp import web

from penstock.admission.hold import Held
from penstock.admission.runner import AdmissionRunner
from penstock.clock import Clock
from penstock.gateway.in_flight import InFlight
from penstock.log.backends.local import LocalLog
from penstock.log.decide.need import need_stream
from penstock.log.operations import Operation
from penstock.log.reading.schemas import StreamSchemas
from penstock.log.retention.collector import Collector
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import StreamName
from penstock.settings.server import Settings

P = ParamSpec("P")
T = TypeVar("T")


class Gateway:
    """One server's state. Used on its event loop only, but for what `in_thread` runs."""

    def __init__(self, log: LocalLog, token: str, clock: Clock) -> None:
        self.log = log
        self.token = token
        self.clock = clock
        self.started_at_ms = clock.wall_ms()
        self.held = Held()
        self.in_flight = InFlight()
        self.stopping = False
        self.body_slots = asyncio.Semaphore(log.settings.ingest_requests_max)
        self.schemas = StreamSchemas()
        self.admission = AdmissionRunner(log, self.held, clock)
        self.collector = Collector(log, clock)
        self._threads = ThreadPoolExecutor(log.settings.fetch_threads, "penstock-gateway")
        self._turns: dict[int, int] = {}
        log.on_visible(self.held.notify)

    @property
    def settings(self) -> Settings:
        return self.log.settings

    async def run(self, operation: Operation) -> Any:
        """Carry an operation out; durable when this returns."""
        return await asyncio.wrap_future(self.log.submit(operation))

    def read(
        self,
        question: Callable[Concatenate[StoreView, P], T],
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Ask a question of the log as it is now. One that may take long goes to `in_thread`."""
        with self.log.reading() as view:
            return question(view, *args, **named)

    async def in_thread(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run what takes long beside the event loop; beyond `fetch_threads` it queues."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: work(*args, **named))

    def stream(self, name: StreamName) -> StreamRecord:
        """The stream, or `unknown_stream`."""
        return self.read(need_stream, name)

    def next_turn(self, stream: StreamRecord) -> int:
        """Whose turn it is among the substreams for a request that names neither one nor a key."""
        turn = self._turns.get(stream.id, 0) % stream.substreams
        self._turns[stream.id] = (turn + 1) % stream.substreams
        return turn

    def hold_s(self, wait_ms: int) -> float:
        """How long a request that asks to be held so long is held."""
        return min(wait_ms, self.settings.hold_ms_max) / 1000

    def close(self) -> None:
        self._threads.shutdown(wait=True)


GATEWAY: web.AppKey[Gateway] = web.AppKey("gateway", Gateway)


def gateway_of(request: web.Request) -> Gateway:
    return request.app[GATEWAY]
