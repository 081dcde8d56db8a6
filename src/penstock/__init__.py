"""Spark Structured Streaming that keeps a latency promise and shows each result exactly once.

`penstock.session()` starts Spark with the plug-in and a server; `penstock.attach(builder)` adds
them to a builder of yours; `create`, `append`, `read` and `follow` work on streams without Spark.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from penstock.client import Appended, Client, Followed, Stream
from penstock.client.default import append, connect, create, follow, read
from penstock.errors import BadCall, Bug, Damaged, Fenced, PenstockError, TryAgain

if TYPE_CHECKING:
    from penstock.sessions import attach, session, verify

__version__ = metadata.version("penstock")

__all__ = [
    "Appended",
    "BadCall",
    "Bug",
    "Client",
    "Damaged",
    "Fenced",
    "Followed",
    "PenstockError",
    "Stream",
    "TryAgain",
    "append",
    "attach",
    "connect",
    "create",
    "follow",
    "read",
    "session",
    "verify",
]


def __getattr__(name: str) -> Any:
    # PySpark takes most of a second to import, and the server and the client never need it.
    if name in ("attach", "session", "verify"):
        from penstock import sessions

        return getattr(sessions, name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
