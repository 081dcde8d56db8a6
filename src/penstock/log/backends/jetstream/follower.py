"""Follows the stream: every message from a place on, in order and without a gap."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.connection import ApiError, Connection
from penstock.log.backends.jetstream.replay import Delivered
from penstock.model.ids import Lsn

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

HEARTBEAT_S = 0.5
SILENCE_S = 1.6
AGAIN_S = 0.3
_SECOND_NS = 1_000_000_000


class Follower:
    """A consumer of the stream that is made anew whenever it may have lost something.

    It lives in one server's memory and acknowledges nothing: what counts is the place up to which
    messages were handed on. A gap in its own count, a heartbeat that names another count, or
    silence means that messages were lost on the way.
    """

    def __init__(self, connection: Connection, applier: Applier) -> None:
        self._connection = connection
        self._applier = applier
        self._prefix = len(connection.address.name) + 1
        self._handed_on = applier.applied
        self._count = 0
        self._broken = asyncio.Event()
        self._heard = 0.0
        self.trouble: str | None = "the stream is not followed yet"

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                subscription, name = await self._consume()
            except Exception as error:  # whatever it is, nothing is applied until it has gone
                self.trouble = str(error) or type(error).__name__
                await asyncio.sleep(AGAIN_S)
                continue
            self.trouble = None
            try:
                await self._watch()
            finally:
                self.trouble = "the stream's messages have stopped coming"
                await self._leave(subscription, name)

    async def _consume(self) -> tuple[Subscription, str]:
        client = self._connection.client
        inbox = client.new_inbox()
        self._count, self._broken = 0, asyncio.Event()
        broken = self._broken

        async def receive(message: Msg) -> None:
            if not broken.is_set():
                self._receive(message, broken)

        try:
            subscription = await client.subscribe(
                inbox, cb=receive, pending_msgs_limit=0, pending_bytes_limit=0
            )
        except Exception as error:
            raise ApiError(503, 0, f"not connected: {error}") from error
        try:
            made = await self._connection.api(
                f"CONSUMER.CREATE.{self._connection.address.name}",
                {"stream_name": self._connection.address.name, "config": self._config(inbox)},
            )
        except BaseException:
            await self._leave(subscription, None)
            raise
        return subscription, str(made["name"])

    def _config(self, inbox: str) -> dict[str, Any]:
        return {
            "deliver_subject": inbox,
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": self._handed_on + 1,
            "ack_policy": "none",
            "max_deliver": 1,
            "replay_policy": "instant",
            "flow_control": True,
            "idle_heartbeat": int(HEARTBEAT_S * _SECOND_NS),
            "inactive_threshold": 30 * _SECOND_NS,
            "num_replicas": 1,
            "mem_storage": True,
        }

    async def _watch(self) -> None:
        """Return once the consumer is broken or silent."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        while not self._broken.is_set():
            left = self._heard + SILENCE_S - loop.time()
            if left <= 0:
                return
            try:
                await asyncio.wait_for(self._broken.wait(), left)
            except TimeoutError:
                continue

    async def _leave(self, subscription: Subscription, name: str | None) -> None:
        try:
            await subscription.unsubscribe()
            if name is not None and self._connection.client.is_connected:
                stream = self._connection.address.name
                await self._connection.client.publish(f"$JS.API.CONSUMER.DELETE.{stream}.{name}")
        except Exception:  # the server forgets it by itself when nobody listens
            return

    def _receive(self, message: Msg, broken: asyncio.Event) -> None:
        self._heard = asyncio.get_running_loop().time()
        headers = message.headers
        if headers is not None and "Status" in headers:
            self._receive_status(message, headers, broken)
            return
        tokens = message.reply.split(".")
        at = 5 if len(tokens) == 9 else 7
        lsn, count, time_ns = (int(each) for each in tokens[at : at + 3])
        if count != self._count + 1:
            broken.set()
            return
        self._count = count
        if lsn <= self._handed_on:
            return
        self._handed_on = Lsn(lsn)
        subject = message.subject[self._prefix :]
        self._applier.put(Delivered(Lsn(lsn), time_ns // 1_000_000, subject, message.data))

    def _receive_status(self, message: Msg, headers: dict[str, str], broken: asyncio.Event) -> None:
        """A heartbeat says how much was sent. A flow-control request is answered once what came
        before it has been applied, so that no more than a window waits here."""
        if headers["Status"] != "100":
            broken.set()
            return
        last = headers.get("Nats-Last-Consumer")
        if last is not None and int(last) != self._count:
            broken.set()
        reply = message.reply or headers.get("Nats-Consumer-Stalled")
        if reply:
            self._applier.put(lambda: self._answer(reply))

    def _answer(self, reply: str) -> None:
        async def publish() -> None:
            if self._connection.client.is_connected:
                await self._connection.client.publish(reply)

        asyncio.run_coroutine_threadsafe(publish(), self._connection.loop)
