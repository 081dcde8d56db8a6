"""Filled states: a query's state made once, runs that begin with a copy of it, and their records.

Pure. The rows of such a run are measured as those of queries that run together: from the intended
send of an input row to the marker of the batch that took it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_lab.experiment.latency import Sighting, batch_slope_ms_per_s
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.query_sets import query_set_of
from penstock_lab.experiment.record import Noted, Run, run_of
from penstock_lab.experiment.search import SLOPE_MS_PER_S_MAX
from penstock_lab.experiment.state_reads import CacheReads, StateReads, between, summed
from penstock_lab.experiment.together import sent_before
from penstock_lab.experiment.visible_rows import Span, throughput, within
from penstock_lab.workloads.load import Load
from penstock_lab.workloads.send import SenderReport

EVENT_RATE = 10_000
"""Events in a second of event time, whatever the rate: so the rows of two rates are the same."""
BACKLOG_S = 1.0
"""How long the rows of a backlog take to be sent, if the server can take them so fast."""


class FilledState(msgspec.Struct, frozen=True):
    """A query that has been run over its first rows: a copy of all it left, and where it stood."""

    query: str
    folder: str
    """Where the server's data and the checkpoint are kept."""
    streams: dict[str, str]
    ids: dict[str, str] = {}
    """Spark's ids of its stages; none if the query has not been started yet."""
    last_batch: int = -1
    positions: dict[str, int] = {}
    next_event: int = 0
    """Number of the generator's event that comes next."""
    sst_bytes: int = 0
    """Size of its state on disk."""


class FilledConditions(msgspec.Struct, frozen=True):
    """Conditions of a run that begins with a filled state: a rate, or a backlog."""

    query: str
    rate: int = 0
    """Events per second; 0 where there is a backlog instead."""
    warm_batches: int = 20
    batches: int = 100
    """So many are measured, after those that warm up."""
    seconds_max: float = 60.0
    """The sender ends by then, whatever number of batches that is."""
    backlog_events: int = 0
    """Events that wait when the query starts, instead of a rate."""
    rows_max: int | None = None
    """The most rows of a batch from each stream; needed where there is a backlog."""
    parameters: dict[str, Any] = {}
    generator: dict[str, Any] = {}
    conf: dict[str, str] = {}
    """Settings of this query alone."""
    read_ms: int | None = None
    """Declared time of a read that needs a block; None: what the process has."""
    is_sampled: bool = False
    """Of a backlog: whether counts are asked for after every batch that is measured."""
    faster_after: int = 0
    """After so many measured batches reads take no declared time any more; 0: never."""
    stall_s: float = 20.0
    drain_s: float = 30.0
    tick_ms: int = 50
    seed: int = 7

    def load(self, streams: dict[str, str], first: int) -> Load:
        """The rows of the run, from event number `first` on."""
        is_backlog = self.backlog_events > 0
        rate = round(self.backlog_events / BACKLOG_S) if is_backlog else self.rate
        return Load(
            query_set_of(self.query).workload,
            streams,
            rate,
            BACKLOG_S if is_backlog else self.seconds_max,
            seed=self.seed,
            first=first,
            tick_ms=self.tick_ms,
            event_speed=rate / EVENT_RATE,
            options=self.generator,
        )


class FilledNoted(msgspec.Struct):
    """Notes about a run from a filled state, filled in as it goes."""

    rows: list[Sighting] = []
    """Input rows, by the batch that took them."""
    report: SenderReport | None = None
    from_ms: float = 0.0
    """When the measured stretch began, since the epoch."""
    until_ms: float = 0.0
    cpu_s: float | None = None
    """Processor time of driver and server in that stretch."""
    faster_from: int = -1
    """The first batch whose reads took no declared time; -1: none."""
    is_drained: bool = True
    batches: list[Span] = []
    reads: list[StateReads] = []
    cache: list[CacheReads] = []
    """Counts of the measured stretch, one for each time that they were asked for."""
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []
    error: str | None = None


class FilledRun(msgspec.Struct, frozen=True):
    """One run from a filled state; latencies in `run` are of its input rows."""

    run: Run
    spans: list[Span] = []
    """All its batches."""
    measured: list[Span] = []
    """Those cut in the measured stretch."""
    throughput: float | None = None
    """Rows per second of batch time."""
    cpu_us_per_row: float | None = None
    reads: StateReads = StateReads(-1)
    cache: CacheReads = CacheReads()
    stretches: list[CacheReads] = []

    @property
    def is_behind(self) -> bool:
        """Whether the query fell behind its rate; latencies are then a lower bound."""
        slope = self.run.slope_ms_per_s
        is_stalled = self.run.verdict.kind == "stalled"
        return is_stalled or (slope is not None and slope > SLOPE_MS_PER_S_MAX)

    @property
    def block_misses_per_row(self) -> float | None:
        rows = sum(span.rows for span in self.measured)
        return self.reads.block_misses / rows if rows else None

    @property
    def read_us_per_row(self) -> float | None:
        """Time in which tasks waited for state that was not in the cache; None without a cache."""
        rows = sum(span.rows for span in self.measured)
        return self.cache.path_us / rows if rows and self.cache.hit_ratio is not None else None


def filled_run(
    conditions: FilledConditions, system: str, repeat: int, noted: FilledNoted
) -> FilledRun:
    """The record of a run, from what was noted."""
    rows = sent_before(noted.rows, round(noted.until_ms * 1000)) if noted.until_ms else noted.rows
    each = Noted(
        noted.rows if conditions.backlog_events else rows,
        noted.report,
        noted.is_drained,
        noted.rows_checked,
        noted.rows_different,
        noted.differences,
        error=noted.error,
    )
    run = run_of(_judged_by(conditions, noted), system, repeat, each)
    if conditions.rate:
        bounds_us = (round(noted.from_ms * 1000), round(noted.until_ms * 1000))
        slope = batch_slope_ms_per_s(noted.rows, *bounds_us)
        run = msgspec.structs.replace(run, slope_ms_per_s=slope)
    measured = within(noted.batches, noted.from_ms, noted.until_ms or float("inf"))
    count = sum(span.rows for span in measured)
    first, last = (measured[0].batch, measured[-1].batch) if measured else (0, -1)
    return FilledRun(
        run,
        noted.batches,
        measured,
        throughput(measured),
        noted.cpu_s * 1e6 / count if noted.cpu_s is not None and count else None,
        between(noted.reads, first, last),
        summed(noted.cache),
        noted.cache,
    )


def _judged_by(conditions: FilledConditions, noted: FilledNoted) -> Conditions:
    """Conditions with the stretch that was measured, which only the run knows."""
    started_ms = noted.report.started_ms if noted.report is not None else noted.from_ms
    # Rows of a backlog are all there before the first batch, and all of them count.
    warm_up_s = 0.0 if conditions.backlog_events else (noted.from_ms - started_ms) / 1000
    return Conditions(
        conditions.query,
        conditions.rate or round(conditions.backlog_events / BACKLOG_S),
        warm_up_s,
        max((noted.until_ms - noted.from_ms) / 1000, 0.0),
        stall_s=conditions.stall_s,
        drain_s=conditions.drain_s,
        seed=conditions.seed,
        is_backlog=conditions.backlog_events > 0,
    )


def too_few(runs: Sequence[FilledRun], batches: int) -> list[FilledRun]:
    """Runs whose measured stretch has fewer batches than it takes."""
    return [each for each in runs if sum(span.rows > 0 for span in each.measured) < batches]
