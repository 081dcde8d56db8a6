"""Parts for tests and benchmarks that others may use too."""

from __future__ import annotations

from penstock.testing.simulate_log_cast import LogParts
from penstock.testing.simulate_log_setup import LogSetup
from penstock.testing.simulate_log_world import LogOutcome, simulate_log
from penstock.testing.simulate_setup import Setup, Violation
from penstock.testing.simulate_world import Outcome, Parts, simulate
from penstock.testing.stores import delayed_store

__all__ = [
    "LogOutcome",
    "LogParts",
    "LogSetup",
    "Outcome",
    "Parts",
    "Setup",
    "Violation",
    "delayed_store",
    "simulate",
    "simulate_log",
]
