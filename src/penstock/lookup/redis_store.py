"""Redis as a store: a key's value is a text, a JSON object or a hash."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa

from penstock.errors import BadCall, TryAgain
from penstock.lookup.store import Key
from penstock.lookup.values import WrongValue, json_reader, text_reader, wrong_value
from penstock.model.ddl import parse_ddl
from penstock.prefetch.value_cache import Row

if TYPE_CHECKING:
    import redis

KINDS = ("text", "json", "hash")
SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True)
class Redis:
    """A Redis server by its URL, and how its values become `columns`, which are Spark's DDL.

    `values` is `text`: the value is the one column; `json`: an object, whose fields are the
    columns; `hash`: a hash, whose fields are the columns. The Redis key is `prefix` and the text of
    the row's key. A hash that has none of the fields counts as absent. The URL may hold a password,
    which is shown nowhere. One server: keys that a cluster divides are not asked for.
    """

    url: str
    columns: str
    values: str = "text"
    prefix: str = ""

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in SCHEMES:
            raise BadCall(
                f"{self.address!r} is not a URL of Redis, such as redis://127.0.0.1:6379/0",
                code="bad_url",
            )
        if self.values not in KINDS:
            raise BadCall(
                f"values are {self.values!r}; they are {', '.join(KINDS)}", code="bad_enrich"
            )
        if self.values == "text" and len(self.schema) != 1:
            raise BadCall(
                f"a text is one column, and {self.columns!r} are {len(self.schema)}; name one "
                "column, or say values='json' or values='hash'",
                code="bad_enrich",
            )
        need_redis()

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Load the client when a worker unpickles the store: on a busy machine that may take longer
        than a request may."""
        self.__dict__.update(state)
        need_redis()
        importlib.import_module("redis")

    def __repr__(self) -> str:
        return f"Redis({self.address!r}, {self.columns!r}, {self.values!r}, {self.prefix!r})"

    @property
    def address(self) -> str:
        """The URL without user and password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @cached_property
    def schema(self) -> pa.Schema:
        return parse_ddl(self.columns)

    def connect(self, timeout_s: float) -> RedisConnection:
        """Open a connection lazily: the first request connects, within the same time."""
        need_redis()
        return RedisConnection(self, timeout_s)


class RedisConnection:
    """A connection of one thread: every request is one round trip."""

    def __init__(self, store: Redis, timeout_s: float) -> None:
        # An optional dependency: see need_redis.
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._redis = redis
        self._store = store
        self._prefix = store.prefix.encode()
        self._client: redis.Redis = redis.Redis.from_url(
            store.url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            # Whoever calls retries, and knows what is left of its time.
            retry=Retry(NoBackoff(), 0),
            single_connection_client=False,
            max_connections=1,
            protocol=2,
        )
        self._names = list(store.schema.names)
        readers = [text_reader(field.type) for field in store.schema]
        self._row = _hash_row(readers) if store.values == "hash" else _text_row(readers[0])
        if store.values == "json":
            self._row = json_reader(store.schema)

    def get_many(self, keys: Sequence[Key]) -> list[Row | None]:
        names = [self._prefix + _key_bytes(key) for key in keys]
        try:
            values = self._hashes(names) if self._store.values == "hash" else self._texts(names)
        except (self._redis.AuthenticationError, self._redis.ResponseError) as error:
            raise self._refused(error) from error
        except (self._redis.RedisError, OSError) as error:
            raise TryAgain(
                f"Redis at {self._store.address} did not answer: {error}", code="store_failed"
            ) from error
        return [self._row_of(key, value) for key, value in zip(keys, values, strict=True)]

    def close(self) -> None:
        self._client.close()

    def _texts(self, names: list[bytes]) -> list[Any]:
        values: list[Any] = self._client.mget(names)
        return values

    def _hashes(self, names: list[bytes]) -> list[Any]:
        asking = self._client.pipeline(transaction=False)
        for name in names:
            asking.hmget(name, self._names)
        values = asking.execute(raise_on_error=False)
        return [None if _is_empty(value) else value for value in values]

    def _row_of(self, key: Key, value: Any) -> Row | None:
        if value is None:
            return None
        if isinstance(value, self._redis.ResponseError):
            raise wrong_value(key, repr(self._store), value)
        try:
            return self._row(value)
        except WrongValue as error:
            raise wrong_value(key, repr(self._store), error) from error

    def _refused(self, error: Exception) -> Exception:
        # A server that loads its data, or has lost its master, says so in an error of this kind.
        words = f"Redis at {self._store.address} refused the request: {error}"
        is_loading = isinstance(error, self._redis.BusyLoadingError)
        if is_loading or str(error).startswith(("MASTERDOWN", "TRYAGAIN")):
            return TryAgain(words, code="store_failed")
        return BadCall(
            f"{words}; correct the URL, or what the server allows this user", code="store_refused"
        )


def need_redis() -> None:
    """Raise BadCall with the way to get Redis's client unless it is installed."""
    if importlib.util.find_spec("redis") is None:
        raise BadCall(
            "Redis's client is not installed in this Python, and look-ups in Redis need it, in the "
            "driver and on every executor; install it with: pip install 'penstock[redis]'",
            code="no_redis_client",
        )


def _text_row(read: Callable[[bytes], Any]) -> Callable[[Any], Row]:
    return lambda value: (read(value),)


def _hash_row(readers: list[Callable[[bytes], Any]]) -> Callable[[Any], Row]:
    def row(values: Any) -> Row:
        return tuple(
            None if value is None else read(value)
            for read, value in zip(readers, values, strict=True)
        )

    return row


def _is_empty(value: Any) -> bool:
    return isinstance(value, list) and all(field is None for field in value)


def _key_bytes(key: Key) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()
