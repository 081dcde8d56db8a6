"""Talks to a running server over HTTP: streams, rows and positions, without Spark."""

from __future__ import annotations

from penstock.client.address import Address
from penstock.client.client import Client
from penstock.client.consume import Consumed, Consumer
from penstock.client.values import (
    Appended,
    Checkpoint,
    Followed,
    MarkedBatch,
    RecordedOffsets,
    StateInLog,
    StoredState,
    Stream,
)

__all__ = [
    "Address",
    "Appended",
    "Checkpoint",
    "Client",
    "Consumed",
    "Consumer",
    "Followed",
    "MarkedBatch",
    "RecordedOffsets",
    "StateInLog",
    "StoredState",
    "Stream",
]
