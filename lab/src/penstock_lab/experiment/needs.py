"""Needs of a suite before anything starts, each missing thing said in a sentence."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable, Collection
from typing import TypeAlias
from urllib.parse import urlsplit

from penstock.errors import BadCall
from penstock.spark.jar import find_jar

REDIS_TIMEOUT_S = 2.0
Has: TypeAlias = Callable[[str], bool]
"""Whether a package is installed."""


def is_installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def require_queries(queries: Collection[str], has: Has = is_installed) -> None:
    """Refuse if something is missing to run these queries or to check their answers."""
    _require(has("duckdb"), "duckdb is not installed, and no answer counts unchecked", "duckdb")
    if {"q4", "q6"} & set(queries):
        _require(has("pandas"), "Q4 and Q6 keep their state with pandas", "penstock-lab")
    find_jar()


def require_campaigns(redis: str, has: Has = is_installed) -> None:
    """Redis and its client, which the ysb query looks campaigns up with."""
    _require(has("redis"), "ysb looks campaigns up in Redis: its client is missing", "redis")
    require_redis(redis)


def require_plot(has: Has) -> None:
    _require(has("matplotlib"), "--plot draws with matplotlib, which is missing", "penstock-lab")


def require_redis(url: str) -> None:
    """A server must answer there; whether it holds the campaigns is seen to later."""
    parts = urlsplit(url)
    where = (parts.hostname or "127.0.0.1", parts.port or 6379)
    try:
        with socket.create_connection(where, timeout=REDIS_TIMEOUT_S):
            return
    except OSError as error:
        raise BadCall(
            f"no Redis answers at {where[0]}:{where[1]} ({error.strerror or error}); start one "
            "with 'redis-server', or name another with --redis",
            code="no_redis",
        ) from error


def require_port(host: str = "127.0.0.1", port: int = 0) -> None:
    """Port 0 asks whether the machine has any to give."""
    try:
        with socket.create_server((host, port)):
            return
    except OSError as error:
        raise BadCall(
            f"port {port or 'of any number'} on {host} cannot be had ({error.strerror or error}); "
            "end what holds it",
            code="port_in_use",
        ) from error


def _require(is_there: bool, sentence: str, package: str) -> None:
    if not is_there:
        raise BadCall(f"{sentence}; install it with: pip install '{package}'", code="missing")
