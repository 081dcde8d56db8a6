"""Parts for tests and benchmarks that others may use too."""

from __future__ import annotations

from penstock.testing.stores import delayed_store

__all__ = ["delayed_store"]
