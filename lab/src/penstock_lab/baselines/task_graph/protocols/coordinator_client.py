"""Calls of a task to the coordinator of its protocol, which is another process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from penstock.errors import TryAgain
from penstock_lab.baselines.task_graph.socket_calls import Calling, call_to
from penstock_lab.baselines.task_graph.task import RETRY_S


class CoordinatorClient:
    """Calls to a coordinator that may be killed and come back: each is repeated until answered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._calling: Calling | None = None

    async def call(self, name: str, *arguments: Any) -> Any:
        while True:
            try:
                if self._calling is None:
                    self._calling = await call_to(self._path)
                return await self._calling.call(name, *arguments)
            except TryAgain as error:
                if error.code != "gone":
                    raise
                self._calling = None
                await asyncio.sleep(RETRY_S)
