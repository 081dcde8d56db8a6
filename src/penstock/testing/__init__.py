"""Parts for the tests of jobs that use Penstock: a clock turned by hand, a store with a declared
delay, and servers to test against."""

from __future__ import annotations

from penstock.testing.clock import ManualClock
from penstock.testing.delayed_store import delayed_store

__all__ = ["ManualClock", "delayed_store"]
