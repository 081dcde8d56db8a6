"""The outcome of a run of the demo, as values that a table and a JSON file are made of."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from penstock_lab.experiment.latency import Sighting
from penstock_lab.percentiles import percentile
from penstock_lab.workloads.send import LAG_MS_P99_MAX, Sent


class QueryOutcome(msgspec.Struct, frozen=True):
    """One query; latencies are of rows sent after the warm-up, as an outside reader saw them."""

    name: str
    batches: int
    rows_committed: int
    latency_ms_p50: float | None
    latency_ms_p99: float | None
    rows_checked: int
    rows_different: int


class Outcome(msgspec.Struct, frozen=True):
    """The whole run; `differences` are sentences about the first rows that differ."""

    seconds: float
    rate: int
    seed: int
    warm_up_s: float
    sender: Sent
    queries: tuple[QueryOutcome, ...]
    differences: tuple[str, ...]

    @property
    def rows_committed(self) -> int:
        return sum(query.rows_committed for query in self.queries)

    @property
    def rows_checked(self) -> int:
        return sum(query.rows_checked for query in self.queries)

    @property
    def rows_different(self) -> int:
        return sum(query.rows_different for query in self.queries)

    @property
    def is_on_schedule(self) -> bool:
        return self.sender.lag_ms_p99 <= LAG_MS_P99_MAX

    @property
    def failure(self) -> str | None:
        """The reason why the run counts as failed, in a sentence; None if it does not."""
        if self.rows_different:
            return f"{self.rows_different} committed rows differ from what DuckDB computes"
        idle = [query.name for query in self.queries if not query.rows_committed]
        if idle:
            return f"{' and '.join(idle)} committed nothing"
        return None

    def figures(self) -> dict[str, float]:
        """Every number by name; a latency that was not measured is left out."""
        by_name: dict[str, float | None] = {
            "rows_sent": self.sender.rows,
            "rows_committed": self.rows_committed,
            "rows_checked": self.rows_checked,
            "rows_different": self.rows_different,
            "sender_lag_ms_p50": self.sender.lag_ms_p50,
            "sender_lag_ms_p99": self.sender.lag_ms_p99,
        }
        for query in self.queries:
            by_name[f"{query.name}.batches"] = query.batches
            by_name[f"{query.name}.rows_committed"] = query.rows_committed
            by_name[f"{query.name}.latency_ms_p50"] = query.latency_ms_p50
            by_name[f"{query.name}.latency_ms_p99"] = query.latency_ms_p99
        return {name: value for name, value in by_name.items() if value is not None}


def latency_ms(
    sightings: Sequence[Sighting],
    share: float,
    *,
    seen_after_ms: int = 0,
    sent_after_ms: int = 0,
) -> float | None:
    """A percentile over the rows seen and sent after those moments; None without any.

    Latency of a row: the moment an outside reader had it, after its marker, less the `sent_at` it
    carries, which is the intended send time of the latest bid in it.
    """
    ages_ms = [
        (sighting.seen_us - sighting.sent_us[sighting.sent_us > sent_after_ms * 1000]) / 1000
        for sighting in sightings
        if sighting.seen_us > seen_after_ms * 1000
    ]
    return percentile(np.concatenate(ages_ms), share) if ages_ms else None
