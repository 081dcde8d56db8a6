"""Publishes operations, many at a time, until each has been seen in the stream.

An operation is answered when this server has applied it. Until then its messages are published
again when JetStream says that it could not take them, or says nothing for a while; their ids, and
the filter that every server applies, make that harmless.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, TryAgain
from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.codec import OperationId, contended, messages
from penstock.log.backends.jetstream.connection import ApiError, Connection
from penstock.log.backends.jetstream.in_flight import Bounds, Lanes, Waiting, lane_of
from penstock.log.backends.jetstream.message_fit import check_fits
from penstock.log.backends.jetstream.replay import PUBLISHED_WINDOW, Outcome, Void, last_on
from penstock.log.backends.jetstream.stream import EXPECT_SUBJECT, NO_MESSAGE, WRONG_LAST
from penstock.log.backends.keep_running import going_on
from penstock.log.backends.outcomes import decided
from penstock.log.operations import Operation
from penstock.log.store.view import StoreView
from penstock.settings.server import Settings

if TYPE_CHECKING:
    from nats.aio.msg import Msg

AGAIN_S = 0.25
SILENT_S = 2.0
UNSEEN_S = 20.0
SWEEP_S = 0.1
_TOO_LARGE = 10054
_FULL = {10076, 10077, 10047, 10028}
_LAST = re.compile(r"wrong last sequence: (\d+)")


class Publisher:
    """The publisher of operations: all but `submit` and `settle` runs on the connection's loop."""

    def __init__(
        self,
        connection: Connection,
        applier: Applier,
        reading: Callable[[], AbstractContextManager[StoreView]],
        settings: Settings,
    ) -> None:
        self._connection = connection
        self._applier = applier
        self._reading = reading
        self._prefix = connection.address.name
        self._publisher = secrets.token_bytes(8)
        self._number = 0
        self.bounds = Bounds(settings)
        self._lanes = Lanes()
        self._submitted: deque[Waiting] = deque()
        self._under_way: dict[int, Waiting] = {}
        self._wake = asyncio.Event()
        self._inbox = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self.refusal: str | None = None

    def submit(self, operation: Operation) -> Future[Any]:
        """Queue an operation; refused at the bound, or when it does not fit into a message."""
        connection = self._connection
        check_fits(self.nothing, operation, connection.payload_max, connection.address)
        waiting = self.bounds.admit(operation)
        self._submitted.append(waiting)
        self._connection.loop.call_soon_threadsafe(self._wake.set)
        return waiting.future

    @property
    def nothing(self) -> OperationId:
        """An operation that this server never publishes: numbers count from 1."""
        return OperationId(self._publisher, 0)

    def is_mine(self, id: OperationId) -> bool:
        """Whether this server published the operation."""
        return id.publisher == self._publisher

    def settle(self, outcomes: list[Outcome]) -> None:
        """Answer what this server published; called by the thread that applied it."""
        for outcome in outcomes:
            if not self.is_mine(outcome.id):
                continue
            waiting = self._under_way.pop(outcome.id.number, None)
            if waiting is None:
                continue
            if isinstance(outcome.answer, Void):
                self._connection.loop.call_soon_threadsafe(self._publish_anew, waiting)
            else:
                self._answer(waiting, outcome.answer)

    def abandon(self) -> None:
        """Tell who still waits that the outcome is not known; nothing is applied after this."""
        for waiting in self.bounds.unanswered():
            unknown = "the server stopped before the log answered; ask again whether it took place"
            waiting.future.set_exception(TryAgain(unknown, code="stopping"))

    async def run(self) -> None:
        """Publish what is submitted until cancelled."""
        await self._listen()
        self._start(self._sweep())
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._submitted and self._has_room():
                waiting = self._submitted.popleft()
                if self._lanes.enter(waiting):
                    with going_on("publishing an operation"):
                        await self._publish(waiting)

    async def _listen(self) -> None:
        """Hear what JetStream says to what is published; nothing is before that can be heard."""
        client = self._connection.client
        self._inbox = client.new_inbox()
        while True:
            try:
                await client.subscribe(
                    f"{self._inbox}.*", cb=self._acked, pending_msgs_limit=0, pending_bytes_limit=0
                )
                return
            except Exception as error:  # a connection that is lost comes back by itself
                self.refusal = f"not connected: {error}"
                await asyncio.sleep(AGAIN_S)

    def _has_room(self) -> bool:
        """Numbers under way stay well within the window in which repeats are recognised."""
        oldest = next(iter(list(self._under_way)), self._number)
        return self._number - oldest < PUBLISHED_WINDOW // 2

    def _start(self, work: Any) -> None:
        """What fails of it is published again by the sweep."""

        async def guarded() -> None:
            with going_on("publishing an operation"):
                await work

        task = asyncio.get_running_loop().create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _answer(self, waiting: Waiting, answer: Any) -> None:
        self.bounds.release(waiting)
        lane = lane_of(waiting.operation)
        if lane is not None:
            self._connection.loop.call_soon_threadsafe(self._leave, lane)
        elif self._submitted:
            self._connection.loop.call_soon_threadsafe(self._wake.set)
        if isinstance(answer, Exception):
            waiting.future.set_exception(answer)
        else:
            waiting.future.set_result(answer)

    def _leave(self, lane: tuple[str, ...]) -> None:
        self._wake.set()  # what was held back for want of room is in no lane yet
        following = self._lanes.leave(lane)
        if following is not None:
            self._start(self._publish(following))

    def _publish_anew(self, waiting: Waiting) -> None:
        waiting.id = None
        self._wake.set()
        self._start(self._publish(waiting))

    async def _publish(self, waiting: Waiting) -> None:
        if waiting.id is None:
            self._number += 1
            waiting.id = OperationId(self._publisher, self._number)
            waiting.messages = messages(waiting.id, waiting.operation)
            waiting.unacked = set(range(len(waiting.messages)))
            self._under_way[self._number] = waiting
        waiting.sent_at_s = asyncio.get_running_loop().time()
        waiting.failed = False
        subject = contended(waiting.operation)
        if subject is not None and waiting.expected is None:
            with self._reading() as view:
                waiting.expected = last_on(view, subject)
        for index in sorted(waiting.unacked):
            await self._send(waiting, index)

    async def _send(self, waiting: Waiting, index: int) -> None:
        """Without a connection nothing is sent, and the sweep comes back to it."""
        client = self._connection.client
        message = waiting.messages[index]
        headers = {"Nats-Msg-Id": f"{waiting.id}.{index}.{waiting.attempt}"}
        if waiting.expected is not None:
            headers[EXPECT_SUBJECT] = str(waiting.expected)
        if not client.is_connected or waiting.id is None:
            waiting.failed = True
            return
        try:
            await client.publish(
                f"{self._prefix}.{message.subject}",
                message.body,
                f"{self._inbox}.{waiting.id.number}-{index}-{waiting.attempt}",
                headers,
            )
        except Exception:  # whatever the client could not do, it is tried again
            waiting.failed = True

    async def _acked(self, message: Msg) -> None:
        number, index, attempt = (
            int(each) for each in message.subject[len(self._inbox) + 1 :].split("-")
        )
        waiting = self._under_way.get(number)
        if waiting is None or attempt != waiting.attempt:
            return
        if message.headers is None and b'"error"' not in message.data:
            waiting.unacked.discard(index)
            self.refusal = None
            return
        error = json.loads(message.data).get("error", {}) if message.data else {}
        code, text = error.get("err_code", 0), error.get("description", "nobody takes messages")
        if code in WRONG_LAST:
            last_match = _LAST.search(text)
            self._start(self._contend(waiting, None if last_match is None else int(last_match[1])))
        elif code == _TOO_LARGE or code in _FULL:
            self._refuse(waiting, text)
        else:
            self.refusal = text
            waiting.failed = True

    def _refuse(self, waiting: Waiting, text: str) -> None:
        if self._drop(waiting):
            refusal = TryAgain(
                f"the stream {self._prefix!r} at {self._connection.address} takes no more: {text}; "
                "raise its limits or those of JetStream, and try again",
                code="storage_full",
                status=507,
            )
            self._answer(waiting, refusal)

    def _drop(self, waiting: Waiting) -> bool:
        """Take back what was not published; whether it was still waiting."""
        assert waiting.id is not None  # only what was published is refused
        return self._under_way.pop(waiting.id.number, None) is not None

    async def _contend(self, waiting: Waiting, last: int | None) -> None:
        """Another message came first on the task log: decide again with it in view.

        1. catch up with that message, because the refusal may rest on it;
        2. refused, or answered without a change: that is the answer;
        3. otherwise publish again, expecting that message.
        """
        if last is None:
            last = await self._last_on(waiting)
        while last is None or self._applier.applied < last:
            await asyncio.sleep(0.002 if last is not None else AGAIN_S)
            if last is None:
                last = await self._last_on(waiting)
        if waiting.id is None or waiting.id.number not in self._under_way:
            return
        with self._reading() as view:
            plan = decided(waiting.operation, view)
        if isinstance(plan, PenstockError) or not plan.changes:
            if self._drop(waiting):
                self._answer(waiting, plan if isinstance(plan, PenstockError) else plan.answer)
            return
        waiting.expected = last
        waiting.attempt += 1
        await self._publish(waiting)

    async def _last_on(self, waiting: Waiting) -> int | None:
        """The last message on the subject of a task log as JetStream has it; None: no answer."""
        subject = f"{self._prefix}.{contended(waiting.operation)}"
        try:
            answer = await self._connection.api(
                f"STREAM.MSG.GET.{self._prefix}", {"last_by_subj": subject}
            )
        except ApiError as error:
            return 0 if error.err_code == NO_MESSAGE else None
        return int(answer["message"]["seq"])

    async def _sweep(self) -> None:
        """Publish again what failed, was not acknowledged, or was and is not seen."""
        while True:
            await asyncio.sleep(SWEEP_S)
            if not self._connection.client.is_connected:
                continue
            now = asyncio.get_running_loop().time()
            for waiting in list(self._under_way.values()):
                age = now - waiting.sent_at_s
                if not waiting.unacked and age > UNSEEN_S:
                    waiting.unacked = set(range(len(waiting.messages)))
                elif not waiting.unacked or age < (AGAIN_S if waiting.failed else SILENT_S):
                    continue
                with going_on("publishing an operation again"):
                    await self._publish(waiting)
