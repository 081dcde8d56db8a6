"""Talks to a running server over HTTP: streams, rows and positions, without Spark."""

from __future__ import annotations

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
