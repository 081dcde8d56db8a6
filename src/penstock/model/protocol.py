"""The version of PROTOCOL.md that this code follows, and the HTTP header that names it."""

from __future__ import annotations

PROTOCOL = 6
"""Raised with every change that a server, plug-in or client of another version would misread."""
PROTOCOL_HEADER = "Penstock-Protocol"
