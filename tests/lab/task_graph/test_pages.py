"""Pages of a tag, as a task asks for them that brings its state back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.errors import BadCall
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import AppendRecord, TrimTag
from penstock_lab.baselines.task_graph.log_client import decode_entries
from penstock_lab.baselines.task_graph.log_process import LogServer


def test_half_a_change_log_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    log = EmbeddedLog.open(tmp_path)
    lsns = [log.run(AppendRecord(("a",), b"x")) for _ in range(3)]
    log.run(TrimTag("a", lsns[1]))

    async def tell() -> None:
        server = LogServer(log, asyncio.get_running_loop())
        with pytest.raises(BadCall, match="are gone"):
            server._page("a", lsns[1], lsns[2], 1 << 20)
        for start in (0, lsns[2]):
            entries = decode_entries(server._page("a", start, lsns[2], 1 << 20))
            assert [entry.head.lsn for entry in entries] == lsns[2:]

    asyncio.run(tell())
    log.close()
