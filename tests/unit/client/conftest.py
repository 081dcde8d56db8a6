"""A clock turned by hand, a scripted server, and no address left over from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import default
from penstock.testing.clock import ManualClock
from support.servers.scripted_server import ScriptedServer


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def scripted() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """No test finds a server that another one, or the person running them, has started."""
    for name in ("PENSTOCK_URL", "PENSTOCK_TOKEN", "PENSTOCK_CA", "PENSTOCK_JAR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    default.use(None)
    yield
    default.use(None)
