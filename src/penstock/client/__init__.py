"""Talks to a running server over HTTP: streams, rows and positions, without Spark."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.client.address import Address
    from penstock.client.client import Client
    from penstock.client.consume import Consumed, Consumer
    from penstock.client.rows import Followed
    from penstock.client.streams import Stream
    from penstock.model.answers import (
        Appended,
        Checkpoint,
        MarkedBatch,
        RecordedOffsets,
        StateInLog,
        StoredState,
    )
    from penstock.model.query_answers import MarkerLine, QueryDescription, TakenOver

__all__ = [
    "Address",
    "Appended",
    "Checkpoint",
    "Client",
    "Consumed",
    "Consumer",
    "Followed",
    "MarkedBatch",
    "MarkerLine",
    "QueryDescription",
    "RecordedOffsets",
    "StateInLog",
    "StoredState",
    "Stream",
    "TakenOver",
]

# A server takes its token's variable from `penstock.client.address`, and needs no HTTP client.
_FOUND_IN = {
    "penstock.client.address": ("Address",),
    "penstock.client.client": ("Client",),
    "penstock.client.consume": ("Consumed", "Consumer"),
    "penstock.client.rows": ("Followed",),
    "penstock.client.streams": ("Stream",),
    "penstock.model.answers": (
        *("Appended", "Checkpoint", "MarkedBatch", "RecordedOffsets", "StateInLog"),
        "StoredState",
    ),
    "penstock.model.query_answers": ("MarkerLine", "QueryDescription", "TakenOver"),
}


def __getattr__(name: str) -> Any:
    for module, names in _FOUND_IN.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'penstock.client' has no attribute {name!r}")
