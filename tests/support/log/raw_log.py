"""A raw log behind a socket and who talks to it, all in the process of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.log.backends.embedded.log import EmbeddedLog
from penstock_lab.baselines.task_graph.log_client import LogClient
from penstock_lab.baselines.task_graph.log_process import LogServer
from penstock_lab.baselines.task_graph.socket_calls import answer_at


@asynccontextmanager
async def hosted(folder: Path) -> AsyncIterator[LogClient]:
    log = EmbeddedLog.open(folder / "log")
    log_server = LogServer(log, asyncio.get_running_loop())
    server = await answer_at(folder / "s", log_server.handle)
    client = await LogClient.open(folder / "s")
    try:
        yield client
    finally:
        client.close()
        server.close()
        log_server.close()
        log.close()


def run(folder: Path, story: Callable[[LogClient], Awaitable[None]]) -> None:
    async def tell() -> None:
        async with hosted(folder) as client:
            await story(client)

    asyncio.run(tell())


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come about")
