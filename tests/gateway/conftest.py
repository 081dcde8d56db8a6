"""One server for all tests that only add streams of their own; the others start theirs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.http_server import Served


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("gateway") / "data") as served:
        yield served


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A stream name of the test's own."""
    return f"s_{abs(hash(request.node.nodeid))}"
