"""The demonstration: two chained stateful queries, watched from outside, every answer checked."""

from __future__ import annotations
