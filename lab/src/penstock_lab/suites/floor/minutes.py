"""Minutes that a run of the floor suite takes, about."""

from __future__ import annotations

from penstock_lab.suites.floor.cells import SYSTEMS, Size

# Seconds on two quiet cores: a process's start with its first batches, and one batch of a query.
START_S, BATCH_S = 20.0, 0.25
# A query whose batches take turns begins with a run that does not count.
NOT_COUNTED = 1
EVICT_BATCH_S, EVICT_ROWS_PER_S = 0.6, 60_000
"""A turn of both sides, and how fast the state that nothing is evicted from is made."""
LOG_S, FILL_MB_PER_S, FETCH_S = 12.0, 60.0, 15.0
"""Appends; how fast the log is filled for what is fetched; and fetching it."""


def minutes_of(size: Size) -> float:
    """Minutes of a run, about, where nothing fails."""
    total_s = 0.0
    if size.has_floor:
        batches = size.warm_up + size.batches
        systems_s = len(SYSTEMS) * (START_S + batches * BATCH_S)
        evict_s = START_S + size.auctions / EVICT_ROWS_PER_S
        evict_s += (size.evict_warm_up + size.evict_batches) * EVICT_BATCH_S
        total_s += size.fetch_mb / FILL_MB_PER_S
        total_s += size.repeats * (systems_s + evict_s + LOG_S + FETCH_S)
    turn_s = (size.warm_up + size.turn_batches) * BATCH_S
    runs = sum(NOT_COUNTED + len(variants) for variants in size.sessions)
    each_s = len(size.sessions) * START_S + runs * turn_s
    return (total_s + size.repeats * len(size.ablated) * each_s) / 60
