"""A Redis server of the tests' own, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.servers.redis_server import RedisServer


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    program = RedisServer.program()
    if program is None:
        pytest.skip("skipped, because there is no redis-server; Debian's package has that name")
    with RedisServer(program, tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def redis_client(redis_server: RedisServer) -> Iterator[Any]:
    """A client of the emptied server."""
    redis = pytest.importorskip("redis")
    client = redis.Redis.from_url(redis_server.url)
    client.flushall()
    yield client
    client.close()
