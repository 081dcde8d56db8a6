"""A clock turned by hand, a scripted server, and no address left over from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import default
from support.scripted_server import ScriptedServer


class TurnedClock:
    """A clock that moves only when someone sleeps on it."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.slept: list[float] = []

    def wall_ms(self) -> int:
        return int(self.now_s * 1000)

    def monotonic_s(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


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
