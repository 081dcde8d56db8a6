"""A subscription of a caller of the log's process, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading

import msgspec

from penstock.log.reading.subscription import Subscription
from penstock_lab.baselines.task_graph.socket_calls import Answering, encoded_message

WAIT_S = 0.5
PUSHES_MAX = 4
"""How many pushes, each of one read of the subscription, may be on their way to a caller that does
not take them. At that many the subscription is not read until it does."""
_encode = msgspec.msgpack.Encoder().encode


class Follower:
    """Pushes what the subscription gives to who asked for it as `name`, until closed.

    It waits while the caller takes nothing, and while it is asked to `hold`; the log keeps what is
    behind. A subscription that fails ends the caller's connection, with the reason.
    """

    def __init__(
        self,
        subscription: Subscription,
        caller: Answering,
        name: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.subscription = subscription
        self._caller, self._name, self._loop = caller, name, loop
        self._changed = threading.Condition()
        self._pushes = 0
        self._is_held = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def has_room(self) -> bool:
        return self._pushes < PUSHES_MAX and not self._is_held

    @property
    def is_running(self) -> bool:
        """Whether it may read the log."""
        return self._thread.is_alive()

    def hold(self, is_held: bool) -> None:
        """Push nothing more, or go on."""
        with self._changed:
            self._is_held = is_held
            self._changed.notify()

    def close(self) -> None:
        """From any thread; what it has read may still be pushed."""
        self.subscription.close()
        with self._changed:
            self._changed.notify()

    def wait_end(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self.subscription.is_closed:
                if not self._wait_room():
                    continue
                entries = self.subscription.next(WAIT_S)
                if entries:
                    message = encoded_message([0, self._name, _encode(entries)])
                    with self._changed:
                        self._pushes += 1
                    self._loop.call_soon_threadsafe(self._push, message)
        except Exception as error:
            self._loop.call_soon_threadsafe(self._caller.fail, self._name, error)
        finally:
            self.subscription.close()

    def _wait_room(self) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: self.has_room or self.subscription.is_closed, WAIT_S)
            return self.has_room

    def _push(self, message: bytes) -> None:
        self._caller.push(message)
        self._caller.when_taken(self._taken)

    def _taken(self) -> None:
        with self._changed:
            self._pushes -= 1
            self._changed.notify()
