"""Follows the stream: every message from a place on, in order and without a gap."""

from __future__ import annotations

import asyncio
import base64
import zlib
from typing import TYPE_CHECKING, Any

from penstock.log.backends.jetstream.applier import Applier
from penstock.log.backends.jetstream.connection import ApiError, Connection
from penstock.log.backends.jetstream.replay import Delivered
from penstock.log.backends.jetstream.stream import NO_MESSAGE, StreamState, stream_state
from penstock.model.ids import Lsn

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

HEARTBEAT_S = 0.5
SILENCE_S = 1.6
AGAIN_S = 0.3
CONFIRM_S = 15.0
"""How long the stream must look like another before the following ends. A leader that was just
chosen may answer before it has applied all that the one before it had acknowledged."""
_SECOND_NS = 1_000_000_000


class Follower:
    """A consumer of the stream that is made anew whenever it may have lost something.

    It lives in one server's memory and acknowledges nothing: what counts is the place up to which
    messages were handed on. A gap in its own count, a heartbeat that names another count, or
    silence means that messages were lost on the way. Before it is made anew, and after every
    reconnection, the stream is looked at: one that is another, or has lost what this server has
    seen, and stays so for `CONFIRM_S`, ends the following.
    """

    def __init__(self, connection: Connection, applier: Applier, state: StreamState) -> None:
        self._connection = connection
        self._applier = applier
        self._state = state
        self._last_handed_on: tuple[str, int] | None = None
        self._prefix = len(connection.address.name) + 1
        self._handed_on = applier.applied
        self._count = 0
        self._broken = asyncio.Event()
        self._heard = 0.0
        self._different_since_s: float | None = None
        self.trouble: str | None = "the stream is not followed yet"
        connection.on_reconnect = self._look_again

    def _look_again(self) -> None:
        """Make the consumer anew, after a look at the stream."""
        self._connection.loop.call_soon_threadsafe(self._broken.set)

    async def run(self) -> None:
        """Follow until cancelled, or until the stream is not the one that was followed."""
        while self._applier.broken is None:
            try:
                if not await self._is_same():
                    await asyncio.sleep(AGAIN_S)
                    continue
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
        self.trouble = "the stream is followed no further"

    async def _is_same(self) -> bool:
        """Whether the stream is the one that was followed, and whole up to where this server is.
        Stop the applier once it has not been for `CONFIRM_S`."""
        difference = await self._difference()
        now_s = self._connection.loop.time()
        if difference is None:
            self._different_since_s = None
            return True
        if self._different_since_s is None:
            self._different_since_s = now_s
        self.trouble = difference
        if now_s - self._different_since_s >= CONFIRM_S:
            self._applier.stop_at(difference)
        return False

    async def _difference(self) -> str | None:
        """What tells the stream from the one that was followed, in a sentence: its identity, its
        end, or the last message that was handed on."""
        name, address = self._connection.address.name, self._connection.address
        now = stream_state(await self._connection.api(f"STREAM.INFO.{name}"))
        if now.created != self._state.created:
            return (
                f"the stream of the log {address}, made at {now.created}, is another one than this "
                f"server has followed, which was made at {self._state.created}; start the server "
                "again to go on with it, or restore the one of before"
            )
        if now.last < self._handed_on:
            return (
                f"the stream of the log {address} ends at {now.last}, and this server has seen "
                f"{self._handed_on}: JetStream has lost what it had acknowledged; restore it from "
                "a backup, or delete the folders of all servers to go on with what is left"
            )
        if not await self._is_last_the_same():
            return (
                f"the stream of the log {address} has another message at {self._handed_on} than "
                "this server has seen there: JetStream has lost what it had acknowledged; restore "
                "it from a backup, or delete the folders of all servers to go on with what is left"
            )
        return None

    async def _is_last_the_same(self) -> bool:
        if self._last_handed_on is None:
            return True
        try:
            answer = await self._connection.api(
                f"STREAM.MSG.GET.{self._connection.address.name}", {"seq": self._handed_on}
            )
        except ApiError as error:
            if error.err_code == NO_MESSAGE:  # purged meanwhile
                return True
            raise
        message = answer["message"]
        body = base64.b64decode(message.get("data", ""))
        return (message["subject"][self._prefix :], zlib.crc32(body)) == self._last_handed_on

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
        self._last_handed_on = (subject, zlib.crc32(message.data))
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
