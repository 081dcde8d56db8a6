"""Both backends, each as one log with several clients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from penstock.log.backends.local import LocalLog
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.backends import Backend, EmbeddedBackend, JetStreamBackend

Opening = Callable[[Settings | None], AbstractContextManager[Backend]]
_names = (f"log-{number}" for number in itertools.count())


@pytest.fixture(scope="session", params=["embedded", "jetstream"])
def opening(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Opening:
    """Opens a new, empty log of the backend."""
    nats = request.getfixturevalue("nats") if request.param == "jetstream" else None

    @contextmanager
    def open_one(settings: Settings | None = None) -> Iterator[Backend]:
        folder = tmp_path_factory.mktemp("log")
        backend: Backend
        if nats is None:
            backend = EmbeddedBackend(folder / "data", ManualClock(), settings)
        else:
            backend = JetStreamBackend(folder, nats.url, next(_names), settings)
        try:
            yield backend
        finally:
            backend.close()

    return open_one


@pytest.fixture
def backend(opening: Opening) -> Iterator[Backend]:
    with opening(None) as backend:
        yield backend


@pytest.fixture
def first_log(backend: Backend) -> LocalLog:
    return backend.clients[0]


@pytest.fixture
def other(backend: Backend) -> LocalLog:
    return backend.clients[1]
