"""Redis as a store, with a real server: values of each kind, silence, loss and restart."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BadCall, TryAgain
from penstock.lookup.lookup import Lookup
from penstock.lookup.redis_store import Redis
from penstock.prefetch.value_cache import ValueCache
from support.lookup_stores import SilentServer
from support.servers.redis_server import RedisServer

NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def url(redis_server: RedisServer) -> str:
    """A data base of these tests alone: others use the server's first one."""
    return f"redis://127.0.0.1:{redis_server.port}/1"


@pytest.fixture
def redis_client(url: str) -> Iterator[Any]:
    """A client of the emptied data base."""
    import redis

    client = redis.Redis.from_url(url)
    client.flushdb()
    yield client
    client.close()


def rows(store: Redis, *keys: Any) -> list[Any]:
    connection = store.connect(5.0)
    try:
        return connection.get_many(keys)
    finally:
        connection.close()


def test_a_text_is_one_column(url: str, redis_client: Any) -> None:
    redis_client.mset({"ad:1": "c1", "ad:2": "c2", "n": "7"})
    ads = Redis(url, "campaign_id string", prefix="ad:")
    assert rows(ads, 2, "1", "3") == [("c2",), ("c1",), None]
    assert rows(Redis(url, "n bigint"), b"n") == [(7,)]


def test_an_object_is_its_fields(url: str, redis_client: Any) -> None:
    redis_client.set("a", '{"price": 1.5, "name": "x", "more": 1}')
    store = Redis(url, "name string, price double", values="json")
    assert rows(store, "a", "b") == [("x", 1.5), None]


def test_a_hash_is_its_fields_and_absent_without_any(url: str, redis_client: Any) -> None:
    redis_client.hset("a", mapping={"name": "x", "price": "1.5"})
    redis_client.hset("b", mapping={"name": "y"})
    redis_client.hset("c", mapping={"other": "1"})
    store = Redis(url, "name string, price double", values="hash")
    assert rows(store, "a", "b", "c", "d") == [("x", 1.5), ("y", None), None, None]


def test_a_value_of_the_wrong_type_is_named(url: str, redis_client: Any) -> None:
    redis_client.mset({"a": "1", "b": "cheap"})
    with pytest.raises(BadCall, match=r"the key 'b' in Redis.*b'cheap' is no double; change") as no:
        rows(Redis(url, "price double"), "a", "b")
    assert no.value.code == "wrong_value"
    with pytest.raises(BadCall, match="WRONGTYPE"):
        rows(Redis(url, "price double", values="hash"), "a")


def test_a_request_is_one_round_trip(url: str, redis_client: Any) -> None:
    redis_client.mset({str(n): str(n) for n in range(1_000)})
    before = redis_client.info("commandstats")
    rows(Redis(url, "n bigint"), *range(1_000))
    after = redis_client.info("commandstats")
    calls = after["cmdstat_mget"]["calls"] - before.get("cmdstat_mget", {"calls": 0})["calls"]
    assert calls == 1


def test_a_server_that_says_nothing_is_given_up_in_time() -> None:
    with SilentServer() as silent:
        connection = Redis(silent.url, "n bigint").connect(0.2)
        begun = time.monotonic()
        with pytest.raises(TryAgain, match="did not answer"):
            connection.get_many(["a"])
        connection.close()
    assert time.monotonic() - begun < 30


def test_a_server_that_is_not_there_may_come_yet() -> None:
    with pytest.raises(TryAgain) as failed:
        rows(Redis(NOWHERE, "n bigint"), "a")
    assert failed.value.code == "store_failed"


def test_a_wrong_password_is_refused_and_the_right_one_is_shown_nowhere(
    url: str, redis_client: Any
) -> None:
    store = Redis(url.replace("//", "//someone:secret@"), "n bigint")
    with pytest.raises(BadCall) as refused:
        rows(store, "a")
    assert refused.value.code == "store_refused"
    assert "secret" not in repr(store) + refused.value.message


def test_a_restarted_server_is_found_again(tmp_path: Path, url: str) -> None:
    program = RedisServer.program()
    assert program is not None
    with RedisServer(program, tmp_path) as first:
        cache = ValueCache("off", 0)
        lookup = Lookup(Redis(first.url, "n bigint"), cache, timeout_s=5.0, retries=2)
        assert lookup.answer(lookup.ask(["a"], [0]))[0] == [None]
    failure = lookup.answer(lookup.ask(["a"], [0]))[1]
    assert failure is not None
    assert "did not answer" in failure.message
    with RedisServer(program, tmp_path, port=first.port):
        assert lookup.answer(lookup.ask(["a"], [0]))[0] == [None]
    lookup.close()


def test_a_store_travels_to_workers(url: str) -> None:
    store = Redis(url, "n bigint", prefix="p:")
    assert pickle.loads(pickle.dumps(store)) == store


def test_a_worker_has_loaded_the_client_before_its_first_request(url: str) -> None:
    pickled = pickle.dumps(Redis(url, "name string")).hex()
    program = (
        "import pickle, sys; assert 'redis' not in sys.modules; "
        f"pickle.loads(bytes.fromhex('{pickled}')); print('redis' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert said.stdout == b"True\n"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"url": "localhost:6379"}, "is not a URL of Redis"),
        ({"values": "list"}, "they are text, json, hash"),
        ({"columns": "a int, b int"}, "a text is one column"),
        ({"columns": "a imt"}, "imt"),
    ],
)
def test_a_store_that_cannot_be_is_refused_at_once(changes: dict[str, str], sentence: str) -> None:
    with pytest.raises(BadCall, match=sentence):
        Redis(**{"url": NOWHERE, "columns": "n bigint", **changes})


def test_a_missing_client_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(BadCall, match=r"pip install 'penstock\[redis\]'"):
        Redis(NOWHERE, "n bigint")
