"""One server for each backend, for all tests that only add streams of their own; the others start
theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.servers.http_server import Served


@pytest.fixture(scope="session", params=["embedded", "jetstream"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    options: tuple[str, ...] = ()
    if request.param == "jetstream":
        options = ("--log", f"{request.getfixturevalue('nats').url}/gateway")
    with Served(tmp_path_factory.mktemp("gateway") / "data", *options) as served:
        yield served


@pytest.fixture(scope="session")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that holds a request for a minute: one that comes sooner was not let go by the time."""
    folder = tmp_path_factory.mktemp("patient") / "data"
    with Served(folder, "--set", "hold_ms_max=60000") as served:
        yield served


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A stream name of the test's own."""
    return f"s_{abs(hash(request.node.nodeid))}"
