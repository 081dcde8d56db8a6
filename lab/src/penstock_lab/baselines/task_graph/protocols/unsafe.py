"""The protocol `unsafe`: outputs are sent every interval and count at once; nothing is marked.

What it costs to commit is the difference to this. After a kill rows are missing or there twice, so
a new instance begins at the beginning and promises nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.log.contract import Entry
from penstock.model.ids import Instance
from penstock_lab.baselines.task_graph.task import TaskRun


class UnsafeRun(TaskRun):
    """A task that commits nothing."""

    async def recover(self) -> None:
        self.instance = Instance(1)
        await self.log.subscribe((self.in_tag,), 0, self.receive)

    def take(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self.process(entry.payload, entry.head.producer)

    async def commit(self) -> None:
        if not self.is_dirty:
            return
        self.pause()
        self.is_dirty = False
        self.send_all()
        await self.sent()
        self.commits += 1
        self.resume()
