"""The state of a server that its routes share: log, settings, threads, memory, held requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
import pyarrow as pa
from aiohttp import web

from penstock.admission.batch_runner import BatchAdmissionRunner
from penstock.admission.hold import Held
from penstock.admission.runner import AdmissionRunner
from penstock.clock import Clock
from penstock.devices.calibration_files import CalibrationFiles
from penstock.devices.planner import DevicePlanner
from penstock.gateway.bodies import Body, BodyMemory
from penstock.gateway.connections import Connections
from penstock.gateway.in_flight import InFlight
from penstock.gateway.log_answers import LogAnswers
from penstock.gateway.page_memory import PageMemory
from penstock.gateway.parse import json_of
from penstock.gateway.tokens import Tokens
from penstock.gateway.turns import Turns
from penstock.log.backends.local import LocalLog
from penstock.log.backends.outcomes import Given
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
LIGHT_BYTES = 32 << 10
"""Of a body that is decoded on the event loop: that takes less than to hand it to a thread."""
LIGHT_ROWS_BYTES = 8 * LIGHT_BYTES
"""Of rows that are decoded there, once they are unpacked: a body may be light and they not."""
LIGHT_READS = 4
"""Lookups on the event loop in one turn of it, so that thousands at once leave room for others."""
BACKUPS_MAX = 4
"""At once; each has a thread."""
CALIBRATIONS = "calibrations"
"""The folder, within that of the data, of the calibrations of machines."""


class Gateway:
    """One server's state. Used on its event loop only, but for what runs in its threads."""

    def __init__(
        self, log: LocalLog, tokens: Tokens, clock: Clock, connections_max: int | None = None
    ) -> None:
        settings = log.settings
        self.log = log
        self.tokens = tokens
        self.clock = clock
        self.started_at_ms = clock.wall_ms()
        self.held = Held()
        self.in_flight = InFlight()
        self.stopping = False
        self.connections = Connections(settings, connections_max or settings.connections_max)
        self.body_memory = BodyMemory(settings.body_bytes_max)
        self.page_memory = PageMemory(settings.pages_bytes_max)
        self.light_reads = Turns(LIGHT_READS)
        self.backups = 0
        self.schemas = StreamSchemas()
        self.admission = AdmissionRunner(log, self.held, clock)
        self.server_id = f"{self.started_at_ms}-{os.getpid()}"
        self.planner = DevicePlanner(CalibrationFiles(log.folder.path / CALIBRATIONS))
        self.batch_admission = BatchAdmissionRunner(
            log,
            self.held,
            clock,
            self.started_at_ms,
            self.admission.hold_input,
            self.planner,
        )
        self.collector = Collector(log, clock)
        self._answers = LogAnswers(asyncio.get_running_loop())
        # Apart, so that whoever reads or copies much keeps nobody from appending.
        self._decoding = ThreadPoolExecutor(settings.ingest_threads, "penstock-ingest")
        self._fetching = ThreadPoolExecutor(settings.fetch_threads, "penstock-fetch")
        self._upkeep = ThreadPoolExecutor(BACKUPS_MAX + 1, "penstock-upkeep")
        self._gathered: list[tuple[Operation, Callable[[Future[Any]], None]]] = []
        self._warming: Future[Any] | None = None
        self._turns: dict[int, int] = {}
        log.on_visible(self.held.notify)

    @property
    def settings(self) -> Settings:
        return self.log.settings

    async def run(self, operation: Operation) -> Any:
        """Carry an operation out; durable when this returns."""
        return await self._answers.of(self.log.submit(operation))

    async def run_together(self, *operations: Operation) -> list[Any]:
        """Carry operations out that came in one request; durable when this returns. One that is
        refused takes none of the others back."""
        submitted = self.log.submit_together(operations)
        return await asyncio.gather(*(self._answers.of(each) for each in submitted))

    async def run_early(self, *operations: Operation) -> list[Given]:
        """Carry out appends of a query's task that came in one request. One whose answer has a
        start is not durable when this returns: it may be lost until a marker that names it is
        answered."""
        submitted = self.log.submit_early(operations)
        given: list[Given] = await asyncio.gather(*map(self._answers.of, submitted))
        return given

    def run_then(self, operation: Operation, on_answer: Callable[[Future[Any]], None]) -> None:
        """Carry an operation out, and call `on_answer` on the event loop once it is durable or
        refused. What comes in one turn of the loop is submitted together: the log's thread then
        wakes once, to a group, and does not contend for the interpreter with those that follow."""
        self.in_flight.__enter__()
        self._gathered.append((operation, on_answer))
        if len(self._gathered) == 1:
            asyncio.get_running_loop().call_soon(self._submit_gathered)

    def _submit_gathered(self) -> None:
        gathered, self._gathered = self._gathered, []
        for operation, on_answer in gathered:
            try:
                submitted = self.log.submit(operation)
            except Exception as refusal:
                submitted = Future()
                submitted.set_exception(refusal)
            self._answers.call(submitted, partial(self._answered, on_answer))

    def _answered(self, on_answer: Callable[[Future[Any]], None], answer: Future[Any]) -> None:
        self.in_flight.__exit__()
        on_answer(answer)

    def read(
        self,
        question: Callable[Concatenate[StoreView, P], T],
        *args: P.args,
        **named: P.kwargs,
    ) -> T:
        """Ask a question of the log as it is now. One that may take long goes to `look_up`."""
        with self.log.reading() as view:
            return question(view, *args, **named)

    async def look_up(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Look up in the log what takes long, beside the event loop; beyond `fetch_threads` it
        queues."""
        return await _in_thread(self._fetching, lambda: work(*args, **named))

    async def look_up_json(
        self,
        question: Callable[Concatenate[StoreView, P], Any],
        *args: P.args,
        **named: P.kwargs,
    ) -> bytes:
        """Look up as `look_up` does; the answer is JSON: to encode a long one takes long, too."""

        def encoded() -> bytes:
            return msgspec.json.encode(self.read(question, *args, **named))

        return await _in_thread(self._fetching, encoded)

    async def upkeep(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Do what an operator has asked for and may wait for, beside everything else."""
        return await _in_thread(self._upkeep, lambda: work(*args, **named))

    async def decode(self, size: int, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Decode a body of this size: a light one at once, another beside the event loop."""
        if self.is_light(size):
            return work(*args, **named)
        return await self.decode_aside(work, *args, **named)

    async def decode_aside(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Decode a body beside the event loop; beyond `ingest_threads` it queues."""
        return await _in_thread(self._decoding, lambda: work(*args, **named))

    def is_light(self, size: int) -> bool:
        """Whether a body of this size is decoded on the event loop."""
        return size <= LIGHT_BYTES and self.is_warm

    def body(self, request: web.Request) -> Body:
        """The body of a request, to be read with `async with`."""
        connection = self.connections.of(request)
        return Body(request, connection, self.body_memory, self.settings.request_bytes_max)

    async def json_body(self, request: web.Request, kind: type[T]) -> T:
        """The JSON body of a request as `kind`."""
        async with self.body(request) as body:
            return await self.decode(len(body), json_of, body, kind)

    def stream(self, name: StreamName) -> StreamRecord:
        """The stream, or `unknown_stream`."""
        return self.read(need_stream, name)

    def next_turn(self, stream: StreamRecord) -> int:
        """The substream whose turn it is, for a request that names neither one nor a key."""
        turn = self._turns.get(stream.id, 0) % stream.substreams
        self._turns[stream.id] = (turn + 1) % stream.substreams
        return turn

    def hold_s(self, wait_ms: int) -> float:
        """The seconds for which a request is held that asks for so many."""
        return min(wait_ms, self.settings.hold_ms_max) / 1000

    def warm_up(self) -> None:
        """Decode a row of nothing beside the event loop: the first array that is made of Python's
        values has Arrow look for pandas, which takes a second where it is installed."""
        self._warming = self._decoding.submit(pa.array, [None])

    @property
    def is_warm(self) -> bool:
        """Whether a light body is light: until then, none is decoded on the event loop."""
        return self._warming is not None and self._warming.done()

    def close(self) -> None:
        self.planner.close()
        for threads in (self._decoding, self._fetching, self._upkeep):
            threads.shutdown(wait=True)


async def _in_thread(threads: ThreadPoolExecutor, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, work)


GATEWAY: web.AppKey[Gateway] = web.AppKey("gateway", Gateway)


def gateway_of(request: web.Request) -> Gateway:
    return request.app[GATEWAY]
