"""What every test may use: markers by folder, and a real server."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from penstock.client import Client
from penstock.testing.nats_servers import NatsServers, nats_program
from support.file_times import FileTimes
from support.run_order import MARKED_FOLDERS, turn
from support.servers.processes import ServerProcess
from support.servers.redis_server import RedisServer
from support.skip_reasons import NO_NATS, NO_REDIS
from support.spark import class_archive

# The same histories every time, so that a failure is a change of the code; new ones are tried by
# tests/property/test_new_histories.py, or by all with the variable.
# How long an example takes says more of the machine than of the code.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("explore"), derandomize=True)
settings.load_profile("explore" if os.environ.get("PENSTOCK_EXPLORE") else "same")

class_archive.use(os.environ)

# A shell without a terminal starts what is in its background with SIGINT ignored, and children
# inherit that: the tests that interrupt a command would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--durations"):
        config.pluginmanager.register(FileTimes())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test's folder under tests/ says what it needs, so that no file has to repeat it.

    The long files come first, then the others that need much, then those that take seconds.
    """
    for item in items:
        folder = _name(item).partition("/")[0]
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)
    items.sort(key=lambda item: turn(_name(item)))


def _name(item: pytest.Item) -> str:
    """A test's file, from tests/ on."""
    root = Path(__file__).parent
    return item.path.relative_to(root).as_posix() if item.path.is_relative_to(root) else ""


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One real server for all tests that only add streams of their own to it."""
    server = ServerProcess(tmp_path_factory.mktemp("server")).start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_if_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer | None]:
    """One real Redis for all tests that look values up, or None where there is none."""
    program = RedisServer.program()
    if program is None or importlib.util.find_spec("redis") is None:
        yield None
        return
    with RedisServer(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(redis_if_installed: RedisServer | None) -> RedisServer:
    if redis_if_installed is None:
        pytest.skip(NO_REDIS)
    return redis_if_installed


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServers]:
    """Three real servers of JetStream for all tests that leave them running."""
    if nats_program() is None:
        pytest.skip(NO_NATS)
    with NatsServers(tmp_path_factory.mktemp("nats")) as servers:
        yield servers


@pytest.fixture
def client(shared_server: ServerProcess) -> Iterator[Client]:
    with shared_server.client() as client:
        yield client
