"""Counts of look-ups: taken in workers, added up in the driver."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

BATCHES_KEPT = 10_000
"""Batches whose look-ups are kept one by one; of more the oldest are forgotten."""
WORKERS_KEPT = 1_000
_RATIO = 1.1
"""From one bucket of times to the next: a percentile is off by a tenth at most."""


@dataclass(slots=True)
class LookupCounts:
    """Keys, once per record batch, by how their values came; and what it took.

    Tasks that Spark runs again are counted again.
    """

    rows: int = 0
    hits: int = 0
    """Keys whose value, or absence, was in the cache."""
    misses: int = 0
    """Keys that the store was asked for while a row waited."""
    waited: int = 0
    """Keys that were being fetched already, by a hint or for an earlier record batch."""
    absent: int = 0
    """Keys that the store has nothing under."""
    null_keys: int = 0
    """Rows whose key is null."""
    failed: int = 0
    """Keys given up, since the store did not answer."""
    retries: int = 0
    prefetched: int = 0
    """Keys fetched for a hint."""
    prefetched_used: int = 0
    prefetched_unused: int = 0
    hints: int = 0
    """Keys that were read ahead, those in the cache included."""
    evictions: int = 0
    expired: int = 0
    round_trips: dict[int, int] = field(default_factory=dict)
    """How many requests took how long, by bucket; `round_trip_ms` reads it."""
    on_path: dict[int, int] = field(default_factory=dict)
    """By micro-batch: keys asked for because of its rows, or hinted and still in flight.

    -1 stands for all that is no streaming batch.
    """
    cache_bytes: dict[str, int] = field(default_factory=dict)
    """By worker: the size of its cache when it was last heard of."""
    ahead_error: str = ""
    """Why reading ahead has stopped in some worker, if it has."""

    def note_round_trip(self, took_s: float) -> None:
        bucket = max(0, math.ceil(math.log(max(took_s * 1e6, 1.0), _RATIO)))
        self.round_trips[bucket] = self.round_trips.get(bucket, 0) + 1

    def round_trip_ms(self, share: float) -> float | None:
        """The time within which that share of the requests was answered; None without any."""
        left = share * sum(self.round_trips.values())
        for bucket, number in sorted(self.round_trips.items()):
            left -= number
            if left <= 0:
                return float(_RATIO**bucket / 1e3)
        return None

    @property
    def batches(self) -> int:
        """The micro-batches seen, up to `BATCHES_KEPT`."""
        return len(self.on_path)

    @property
    def batches_on_path(self) -> int:
        """The micro-batches that had look-ups on their path."""
        return sum(number > 0 for number in self.on_path.values())

    def add(self, other: LookupCounts) -> LookupCounts:
        """Count the other in, and give this back."""
        for each in fields(self):
            mine, more = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, int):
                setattr(self, each.name, mine + more)
        self.ahead_error = other.ahead_error or self.ahead_error
        for bucket, number in other.round_trips.items():
            self.round_trips[bucket] = self.round_trips.get(bucket, 0) + number
        for batch, number in other.on_path.items():
            self.on_path[batch] = self.on_path.get(batch, 0) + number
        for worker, size in other.cache_bytes.items():
            self.cache_bytes.pop(worker, None)
            self.cache_bytes[worker] = size
        _keep(self.on_path, BATCHES_KEPT)
        _keep(self.cache_bytes, WORKERS_KEPT)
        return self

    def __str__(self) -> str:
        asked = self.hits + self.misses + self.waited
        times = [self.round_trip_ms(share) for share in (0.5, 0.99)]
        words = "no round trip" if times[0] is None else f"round trip p50 {times[0]:.2f} ms"
        if times[1] is not None:
            words += f", p99 {times[1]:.2f} ms"
        return (
            f"{self.rows} rows, {asked} keys: {self.hits} hits, {self.misses} misses, "
            f"{self.waited} in flight, {self.absent} absent, {self.failed} failed; "
            f"{self.prefetched} prefetched ({self.prefetched_used} used, "
            f"{self.prefetched_unused} unused); {self.batches_on_path} of {self.batches} batches "
            f"waited for the store; {words}"
        )


def _keep(numbers: dict[int, int] | dict[str, int], kept_max: int) -> None:
    for oldest in list(numbers)[: max(0, len(numbers) - kept_max)]:
        del numbers[oldest]  # type: ignore[arg-type]
