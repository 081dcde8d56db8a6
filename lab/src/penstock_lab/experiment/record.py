"""Records of runs: one query on one system, made from what was noted while it ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import (
    EventTime,
    Latencies,
    Second,
    Sighting,
    batch_slope_ms_per_s,
    curve,
    latencies,
    longest_gap_ms,
    past_window_ms,
    row_latencies_ms,
    series,
    slope_ms_per_s,
)
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.verdict import Evidence, Verdict, judge
from penstock_lab.workloads.send import SenderReport
from penstock_lab.workloads.sending import Sent

C = TypeVar("C")
Kind: TypeAlias = Literal[
    "compared",
    "growth",
    "sustain",
    "spare",
    "burst",
    "backlog",
    "beside",
    "past limit",
    "overhead",
    "adaptation",
    "calibration",
]
"""What a run was made for."""
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
    busy_share: float | None = None
    """Of the measured stretch, with a batch under way; None where nothing tells it."""
    longest_gap_ms: float | None = None
    sent: Sent | None = None
    lag_ms: list[float] = []
    series: list[Second] = []
    curve: list[float] = []
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []
    phases: dict[str, dict[str, float]] = {}
    warm_up_s: float = 0.0
    """From the first send to the measured stretch."""
    warm_up_batches: int | None = None
    """Batches in the warm-up; None where they were not counted."""
    warm_up_batches_asked: int = 0
    """As many as there were to be: there are fewer where its seconds were over before."""

    @property
    def is_counted(self) -> bool:
        return self.verdict.is_counted

    @property
    def is_warm_up_short(self) -> bool:
        """Whether fewer batches were counted in its warm-up than there were to be."""
        batches = self.warm_up_batches
        return batches is not None and batches < self.warm_up_batches_asked


class Noted(msgspec.Struct):
    """Notes of a run, filled in as it goes, so that a run cut short has what it came to."""

    sightings: Sequence[Sighting] = ()
    sender_report: SenderReport | None = None
    is_drained: bool = True
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []
    phases: dict[str, dict[str, float]] = {}
    error: str | None = None
    batches: list[Timed] = []
    """All that Spark reported, the warm-up's included, where it is asked to tell them."""
    steps: dict[str, dict[str, float]] = {}
    """Of the commits, by name: count, total and most milliseconds."""
    rss_mb: float | None = None
    """The most memory of the JVM in the run."""
    cpu_s: float | None = None
    """Processor time of driver and server in the measured stretch."""
    snapshot_bytes: list[int] = []
    """Of the state of every batch, all partitions together, where snapshots are kept of all."""
    warm_ms: float | None = None
    """When the warm-up was over, since the epoch; None: as long after the first send as the
    conditions say."""
    warm_up_batches: int | None = None
    """Batches in the warm-up, where they are counted."""

    def measured_from_ms(self, conditions: Conditions) -> float:
        """The begin of the measured stretch, since the epoch; the sender must have reported."""
        if self.warm_ms is not None:
            return self.warm_ms
        assert self.sender_report is not None
        return self.sender_report.started_ms + conditions.warm_up_s * 1000


class Measured(msgspec.Struct, Generic[C], frozen=True):
    """A run of a system at a cell: what two systems are compared at."""

    cell: C
    run: Run
    kind: Kind = "compared"

    @property
    def is_counted(self) -> bool:
        return self.run.is_counted

    @property
    def is_right(self) -> bool:
        return self.run.verdict.kind != "wrong"

    @property
    def system(self) -> str:
        return self.run.system

    @property
    def repeat(self) -> int:
        return self.run.repeat


def run_of(conditions: Conditions, system: str, repeat: int, noted: Noted) -> Run:
    """Pure: percentiles, gaps and the verdict from what was noted."""
    sender_report, query, rate = noted.sender_report, conditions.query, conditions.rate
    if sender_report is None:
        error = noted.error or "the run did not come to its end"
        return Run(query, system, repeat, Verdict("failed", (error,)), rate)
    started_us = sender_report.started_ms * 1000
    warm_us = int(noted.measured_from_ms(conditions) * 1000)
    ended_us = warm_us + int(conditions.measure_s * 1e6)
    values = row_latencies_ms(noted.sightings, warm_us)
    base_us = conditions.query_set.base_time_ms * 1000
    event_time = EventTime(base_us, started_us, conditions.event_speed)
    gap_ms = longest_gap_ms([sighting.seen_us for sighting in noted.sightings], warm_us, ended_us)
    evidence = Evidence(
        results=int(values.size),
        longest_gap_ms=gap_ms,
        lag_ms_p99=sender_report.sent.lag_ms_p99,
        rows_checked=noted.rows_checked,
        rows_different=noted.rows_different,
        is_drained=noted.is_drained,
        error=noted.error,
    )
    return Run(
        query=query,
        system=system,
        repeat=repeat,
        verdict=judge(evidence, conditions.limits),
        rate=rate,
        results=evidence.results,
        latency=latencies(values),
        past_window=latencies(past_window_ms(noted.sightings, event_time, warm_us)),
        slope_ms_per_s=slope_ms_per_s(noted.sightings, warm_us),
        longest_gap_ms=round(gap_ms, 1),
        sent=sender_report.sent,
        lag_ms=sender_report.lag_ms,
        series=series(noted.sightings, started_us),
        curve=curve(values),
        rows_checked=noted.rows_checked,
        rows_different=noted.rows_different,
        differences=noted.differences[:DIFFERENCES_KEPT],
        phases=noted.phases,
        warm_up_s=round((warm_us - started_us) / 1e6, 3),
        warm_up_batches=noted.warm_up_batches,
        warm_up_batches_asked=conditions.warm_up_batches,
    )


def with_batch_slope(run: Run, conditions: Conditions, noted: Noted) -> Run:
    """The run with the rise of its latency taken over the oldest row of every batch."""
    if noted.sender_report is None:
        return run
    warm_us = noted.sender_report.started_ms * 1000 + round(conditions.warm_up_s * 1e6)
    until_us = warm_us + round(conditions.measure_s * 1e6)
    slope = batch_slope_ms_per_s(noted.sightings, warm_us, until_us)
    return msgspec.structs.replace(run, slope_ms_per_s=slope)


def as_columns(kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> dict[str, list[Any]]:
    """The rows, all of one kind, field by field: a result file stays small that way."""
    return {name: [getattr(row, name) for row in rows] for name in kind.__struct_fields__}


def in_file(run: Run) -> dict[str, Any]:
    """A run for the result file; single lags are summed up in `sent` already."""
    built: dict[str, Any] = msgspec.to_builtins(run)
    del built["lag_ms"]
    return built
