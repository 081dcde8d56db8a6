"""The log of a task graph as a process of its own: `python -m …task_graph.log_process JSON`.

Tasks, senders and readers are other processes and reach the log through a socket, so that killing
one of them kills nothing else. The process decides nothing: it hands operations to the log.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from penstock.errors import BadCall
from penstock.log.backends.local import LocalLog
from penstock.log.contract import Entry
from penstock.log.operations import AppendRecord, SetAux, TrimTag
from penstock.log.reading.subscription import check_whole
from penstock.model.ids import Instance, Lsn
from penstock_lab.baselines.task_graph.follower import Follower, LoopCalls
from penstock_lab.baselines.task_graph.logs import open_log
from penstock_lab.baselines.task_graph.socket_calls import Answering, answer_at
from penstock_lab.processes import READY, ended_with_parent, first_of

SWITCH_S = 0.0005
_encode = msgspec.msgpack.Encoder().encode


class LogJob(msgspec.Struct, frozen=True):
    """The log to open, and where its socket goes."""

    log: str
    """A folder, or the address of a JetStream."""
    folder: str
    """Of the log, or of what a server keeps of a JetStream."""
    socket: str


class LogServer:
    """The log as its clients call it: answers the calls of `LogClient`."""

    def __init__(self, log: LocalLog, loop: asyncio.AbstractEventLoop) -> None:
        self._log = log
        self._loop = loop
        self._calls = LoopCalls(loop)
        self._followers: dict[tuple[Answering, int], Follower] = {}

    def close(self) -> None:
        """Follow the log no more. To be called on the loop, before the log is closed."""
        for follower in self._followers.values():
            follower.close()

    def handle(self, caller: Answering, number: int, name: str, arguments: list[Any]) -> None:
        match name:
            case "append":
                self._append(caller, number, *arguments)
            case "set_aux":
                lsn, aux = arguments
                self._submitted(caller, number, self._log.submit(SetAux(Lsn(lsn), aux)))
            case "subscribe":
                self._subscribe(caller, *arguments)
                caller.answer(number, None)
            case "hold":
                self._hold(caller, *arguments)
                caller.answer(number, None)
            case "trim":
                tag, until = arguments
                trimmed = self._log.submit(TrimTag(tag, Lsn(until)))
                self._submitted(caller, number, trimmed, lambda done: done.until)
            case "tail" | "entry" | "aux" | "page":
                call = self._loop.run_in_executor(None, getattr(self, f"_{name}"), *arguments)
                call.add_done_callback(lambda done: _pass_on(caller, number, done))
            case _:
                raise BadCall(f"there is no call {name!r}", code="bad_request")

    def _append(
        self,
        caller: Answering,
        number: int,
        tags: list[str],
        payload: bytes,
        expect: list[Any] | None,
        producer: str | None,
        instance: int | None,
        seq: int | None,
    ) -> None:
        operation = AppendRecord(
            tuple(tags),
            payload,
            None if expect is None else (expect[0], Lsn(expect[1])),
            producer,
            None if instance is None else Instance(instance),
            seq,
        )
        self._submitted(caller, number, self._log.submit(operation))

    def _submitted(
        self,
        caller: Answering,
        number: int,
        future: Future[Any],
        answer: Callable[[Any], Any] = lambda done: done,
    ) -> None:
        future.add_done_callback(
            lambda done: self._calls.put(partial(_pass_on, caller, number, done, answer))
        )

    def _subscribe(self, caller: Answering, name: int, tags: list[str], after: int) -> None:
        self._followers = {
            key: follower
            for key, follower in self._followers.items()
            if not follower.subscription.is_closed
        }
        follower = Follower(*(self._log, tags, Lsn(after), caller, name, self._loop, self._calls))
        self._followers[caller, name] = follower
        caller.on_lost.append(follower.close)

    def _hold(self, caller: Answering, name: int, is_held: bool) -> None:
        follower = self._followers.get((caller, name))
        if follower is not None:
            follower.hold(is_held)

    def _tail(self, tag: str) -> Lsn:
        with self._log.reading() as view:
            return view.tail(tag) or Lsn(0)

    def _aux(self, lsn: int) -> bytes | None:
        with self._log.reading() as view:
            aux: bytes | None = view.aux(Lsn(lsn))
            return aux

    def _entry(self, lsn: int) -> bytes:
        with self._log.reading() as view:
            entry = view.entry(Lsn(lsn))
            if entry is None:
                raise BadCall(f"there is no entry {lsn}", code="unknown_entries")
            return _encode([entry])

    def _page(self, tag: str, start: int, until: int, bytes_max: int) -> bytes:
        entries: list[Entry] = []
        size = 0
        with self._log.reading() as view:
            if start > 0:
                check_whole(view, (tag,), start - 1)
            for lsn in view.tagged(tag, start):
                if lsn > until or size >= bytes_max:
                    break
                entry = view.entry(lsn)
                if entry is not None:
                    entries.append(entry)
                    size += entry.head.payload_bytes
        return _encode(entries)


class _Done(Protocol):
    def exception(self) -> BaseException | None: ...

    def result(self) -> Any: ...


def _pass_on(
    caller: Answering,
    number: int,
    done: _Done,
    answer: Callable[[Any], Any] = lambda done: done,
) -> None:
    error = done.exception()
    if error is None:
        caller.answer(number, answer(done.result()))
    else:
        caller.refuse(number, error)


async def serve(job: LogJob) -> None:
    """Serve the log until SIGTERM, or until the process that started this one is gone."""
    loop = asyncio.get_running_loop()
    log = open_log(job.log, Path(job.folder))
    log_server = LogServer(log, loop)
    try:
        server = await answer_at(Path(job.socket), log_server.handle)
        stop = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, stop.set)
        print(READY, flush=True)
        await first_of(stop.wait(), ended_with_parent())
        server.close()
    finally:
        log_server.close()
        log.close()


if __name__ == "__main__":
    # The writer and the readers' threads share one interpreter with the calls.
    sys.setswitchinterval(SWITCH_S)
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=LogJob)))
