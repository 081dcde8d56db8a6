"""What is kept of one run of one query on one system, and how it is made from what was noted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_lab.experiment.latency import (
    EventTime,
    Latencies,
    Second,
    Sighting,
    curve,
    latencies,
    longest_gap_ms,
    past_window_ms,
    row_latencies_ms,
    series,
    slope_ms_per_s,
)
from penstock_lab.experiment.verdicts import Evidence, Limits, Verdict, judge
from penstock_lab.workloads.send import Told
from penstock_lab.workloads.sending import Sent

DIFFERENCES_KEPT = 5


class Run(msgspec.Struct, frozen=True):
    """One run, as it stands in the result file. Times in milliseconds."""

    query: str
    system: str
    repeat: int
    verdict: Verdict
    rate: int
    results: int = 0
    latency: Latencies | None = None
    past_window: Latencies | None = None
    """Latency past the end of the window plus the watermark's delay."""
    slope_ms_per_s: float | None = None
    longest_gap_ms: float | None = None
    sent: Sent | None = None
    lag_ms: list[float] = []
    series: list[Second] = []
    curve: list[float] = []
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []
    phases: dict[str, dict[str, float]] = {}

    @property
    def is_counted(self) -> bool:
        return self.verdict.is_counted


class Noted(msgspec.Struct):
    """What a run left behind; filled in as it goes, so that a run cut short has what it came to."""

    sightings: Sequence[Sighting] = ()
    told: Told | None = None
    is_drained: bool = True
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []
    phases: dict[str, dict[str, float]] = {}
    error: str | None = None


class Frame(msgspec.Struct, frozen=True):
    """The times a run is judged by."""

    warm_up_s: float
    measure_s: float
    event_base_ms: int
    event_speed: float
    limits: Limits


def run_of(query: str, system: str, repeat: int, rate: int, noted: Noted, frame: Frame) -> Run:
    """Pure: percentiles, gaps and the verdict from what was noted."""
    told = noted.told
    if told is None:
        error = noted.error or "the run did not come to its end"
        return Run(query, system, repeat, Verdict("failed", (error,)), rate)
    started_us = told.started_ms * 1000
    warm_us = started_us + int(frame.warm_up_s * 1e6)
    ended_us = warm_us + int(frame.measure_s * 1e6)
    values = row_latencies_ms(noted.sightings, warm_us)
    event_time = EventTime(frame.event_base_ms * 1000, started_us, frame.event_speed)
    gap_ms = longest_gap_ms([one.seen_us for one in noted.sightings], warm_us, ended_us)
    evidence = Evidence(
        results=int(values.size),
        longest_gap_ms=gap_ms,
        lag_ms_p99=told.sent.lag_ms_p99,
        rows_checked=noted.rows_checked,
        rows_different=noted.rows_different,
        is_drained=noted.is_drained,
        error=noted.error,
    )
    return Run(
        query=query,
        system=system,
        repeat=repeat,
        verdict=judge(evidence, frame.limits),
        rate=rate,
        results=evidence.results,
        latency=latencies(values),
        past_window=latencies(past_window_ms(noted.sightings, event_time, warm_us)),
        slope_ms_per_s=slope_ms_per_s(noted.sightings, warm_us),
        longest_gap_ms=round(gap_ms, 1),
        sent=told.sent,
        lag_ms=told.lag_ms,
        series=series(noted.sightings, started_us),
        curve=curve(values),
        rows_checked=noted.rows_checked,
        rows_different=noted.rows_different,
        differences=noted.differences[:DIFFERENCES_KEPT],
        phases=noted.phases,
    )


def in_file(run: Run) -> dict[str, Any]:
    """A run for the result file; single lags are summed up in `sent` already."""
    built: dict[str, Any] = msgspec.to_builtins(run)
    del built["lag_ms"]
    return built
