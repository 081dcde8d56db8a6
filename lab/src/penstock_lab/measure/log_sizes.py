"""Sizes of what is appended to a log, and how a log to measure is named."""

from __future__ import annotations

EMBEDDED, JETSTREAM = "embedded", "jetstream"
SIZES = {"100B": 100, "16KiB": 16 << 10, "128KiB": 128 << 10}
WRITERS = (1, 16)
GATEWAY_SIZES = ("100B", "16KiB")
CLIENTS = (1, 16, 200)
"""Of a server, over HTTP."""
GB = 1_000_000_000


def stream_at(log: str, name: str) -> str:
    """The log of that name, at servers of JetStream; the embedded log is told by its folder."""
    return f"{log}/{name}" if "://" in log else log
