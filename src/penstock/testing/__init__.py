"""Parts for tests and benchmarks that others may use too."""

from __future__ import annotations

from penstock.testing.simulate_setup import Setup, Violation
from penstock.testing.simulate_world import Outcome, Parts, simulate
from penstock.testing.stores import delayed_store

__all__ = ["Outcome", "Parts", "Setup", "Violation", "delayed_store", "simulate"]
