"""A server of its own for every test: faults leave traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.exactly_once import EVENTS
from support.processes import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    process.client().create("events", EVENTS, substreams=2, key="key")
    yield process
    process.stop()
