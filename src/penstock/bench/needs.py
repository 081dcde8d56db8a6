"""What must be there before anything starts, each missing thing said in a sentence."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from penstock.bench.plan import Plan
from penstock.bench.systems import system
from penstock.errors import BadCall
from penstock.jvm.jar import find_jar

REDIS_TIMEOUT_S = 2.0


def require_all(
    plan: Plan,
    *,
    plot: bool,
    has: Callable[[str], bool] = lambda name: importlib.util.find_spec(name) is not None,
) -> None:
    """Raises BadCall with the first thing that is missing and how to get it."""
    _require(has("duckdb"), "duckdb is not installed, and no answer counts unchecked", "duckdb")
    if {"q4", "q6"} & set(plan.queries):
        _require(has("pandas"), "Q4 and Q6 keep their state with pandas", "penstock[bench]")
    if plot:
        require_plot(has)
    find_jar()
    if plan.redis is not None:
        _require(
            has("redis"),
            "the ysb suite looks campaigns up in Redis: its client is missing",
            "redis",
        )
        require_redis(plan.redis)
    if any(system(name).rows == "log" for name in plan.systems):
        require_port()


def require_plot(has: Callable[[str], bool]) -> None:
    _require(has("matplotlib"), "--plot draws with matplotlib, which is missing", "penstock[plot]")


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
