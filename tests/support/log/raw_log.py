"""A raw log behind a socket and who talks to it, all in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.log.backends.embedded.log import EmbeddedLog
from penstock_lab.baselines.task_graph.log_client import Port
from penstock_lab.baselines.task_graph.log_process import Host
from penstock_lab.baselines.task_graph.socket_calls import answer_at


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[Port]:
    log = EmbeddedLog.open(folder / "log")
    host = Host(log, asyncio.get_running_loop())
    server = await answer_at(folder / "s", host.handle)
    port = await Port.open(folder / "s")
    try:
        yield port
    finally:
        port.close()
        server.close()
        host.close()
        log.close()


def run(folder: Path, story: Callable[[Port], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with hosted(folder) as port:
            await story(port)

    asyncio.run(tell())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come about")
