"""A server of its own for every test: faults leave traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers.processes import ServerProcess
from support.spark.exactly_once import EVENTS


@pytest.fixture
def log_options(request: pytest.FixtureRequest) -> list[str]:
    """Where a server keeps its log: in its folder, or in the stream of JetStream a test names."""
    stream = getattr(request, "param", None)
    if stream is None:
        return []
    return ["--log", f"{request.getfixturevalue('nats').url}/{stream}"]


@pytest.fixture
def server(tmp_path: Path, log_options: list[str]) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data", *log_options).start()
    process.client().create("events", EVENTS, substreams=2, key="key")
    yield process
    process.stop()
