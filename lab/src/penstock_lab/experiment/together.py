"""Several queries at once in one driver: conditions of such a run, and records made of it. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from penstock_lab.experiment.device_plans import PlannedBatches
from penstock_lab.experiment.latency import (
    Latencies,
    Sighting,
    batch_slope_ms_per_s,
    latencies,
    row_latencies_ms,
)
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.query_sets import QuerySet, query_set_of
from penstock_lab.experiment.record import Noted, Run, run_of
from penstock_lab.experiment.verdict import Kind, Verdict
from penstock_lab.experiment.visible_rows import (
    Span,
    batch_maxima_ms,
    busy_share,
    miss_ratio,
    throughput,
    within,
)
from penstock_lab.workloads.load import Load
from penstock_lab.workloads.send import SenderReport

Traffic: TypeAlias = Literal["constant", "normal", "burst"]
GRAVEST_FIRST: tuple[Kind, ...] = ("wrong", "failed", "stalled", "void: late generator", "ok")
BACKLOG_S = 1.0
"""The rows of a backlog take as many seconds to be sent, or more where they are many."""
BACKLOG_TICK_MS = 5
BACKLOG_COMMIT_ROWS = 500
"""The most rows in a commit of a backlog: none is ever divided, and first batches are small."""


class Part(msgspec.Struct, frozen=True):
    """One of the queries, and what starts its batches."""

    query: str
    every_s: float = 0.0
    """The trigger interval; 0: a batch begins when its source says so."""
    options: dict[str, str] = {}
    """Of its sources: a deadline, a policy."""
    pool: str | None = None
    """The pool of Spark's scheduler that it is put into."""
    conf: dict[str, str] = {}
    """Settings of the session for this query alone."""


class Together(msgspec.Struct, frozen=True):
    """Conditions of one run of several queries over the same rows."""

    parts: tuple[Part, ...]
    rate: int
    """Events per second."""
    warm_up_s: float
    measure_s: float
    tail_s: float = 0.0
    """How long rows go on coming after the measured stretch: the end of the input makes queries
    cut at once, which the last rows that count must not profit from."""
    event_speed: float = 4.0
    traffic: Traffic = "normal"
    burst_from_s: float = 0.0
    """When the burst begins, from the first send; there is one in a run."""
    burst_s: float = 0.0
    backlog_rows: int = 0
    """Rows that are there before the queries start."""
    stall_s: float = 20.0
    drain_s: float = 90.0
    tick_ms: int = 50
    seed: int = 7
    generator: dict[str, int] = {}
    """Further options of the generator."""
    deletes_streams: bool = False
    """Whether its streams go when it is over: rows of many fast runs fill a disk."""

    @property
    def query_set(self) -> QuerySet:
        return query_set_of(self.parts[0].query)

    @property
    def seconds(self) -> float:
        """Seconds that the sender sends."""
        return self.warm_up_s + self.measure_s + self.tail_s

    def of(self, part: Part) -> Conditions:
        """The conditions one of the queries is judged by."""
        return Conditions(
            part.query,
            self.rate,
            self.warm_up_s,
            self.measure_s,
            event_speed=self.event_speed,
            stall_s=self.stall_s,
            drain_s=self.drain_s,
            seed=self.seed,
            every_s=part.every_s,
            options=part.options,
        )

    def load(self, streams: dict[str, str]) -> Load:
        """The rows that come while the queries run."""
        return Load(
            self.query_set.workload,
            streams,
            self.rate,
            self.seconds,
            seed=self.seed,
            first=self.backlog_rows,
            tick_ms=self.tick_ms,
            traffic=self.traffic,
            burst_every_s=self.burst_from_s + self.burst_s or 30.0,
            burst_s=self.burst_s or 1.0,
            event_speed=self.event_speed,
            options=self.generator,
        )

    def backlog(self, streams: dict[str, str]) -> Load:
        """The rows that are there before: the events before the others, in the same event time."""
        full_s = self.backlog_rows / BACKLOG_COMMIT_ROWS * BACKLOG_TICK_MS / 1000
        seconds = max(BACKLOG_S, float(math.ceil(full_s)))
        rate = round(self.backlog_rows / seconds)
        return Load(
            self.query_set.workload,
            streams,
            rate,
            seconds,
            seed=self.seed,
            tick_ms=BACKLOG_TICK_MS,
            event_speed=self.event_speed * rate / self.rate,
            options=self.generator,
        )


class PartNoted(msgspec.Struct):
    """Notes about one of the queries, filled in as its run goes."""

    rows: list[Sighting] = []
    """Input rows, by the batch that took them."""
    results: Sequence[Sighting] = ()
    """Rows it wrote, as a reader outside saw them."""
    batches: list[Span] = []
    estimates_off: dict[str, float] = {}
    """By estimator, the median of how far it was off, as a share of what a batch took."""
    admission: dict[str, float] = {}
    """What the server says of its decisions: how late cuts were, what share of time they took."""
    planned: PlannedBatches | None = None
    """Plans of its batches; None where nobody planned them."""
    plan_notes: tuple[str, ...] = ()
    """The notes that rules left on its plan."""
    rows_checked: int = 0
    rows_different: int = 0
    differences: list[str] = []


class TogetherNoted(msgspec.Struct):
    """Notes about a run, filled in as it goes."""

    parts: dict[str, PartNoted] = {}
    report: SenderReport | None = None
    started_ms: float = 0.0
    """When the queries were started, since the epoch."""
    is_drained: bool = True
    cpu_s: float | None = None
    """Processor time of driver and server in the measured stretch."""
    error: str | None = None


class QueryRun(msgspec.Struct, frozen=True):
    """One query of a run: latencies of its input rows in `run`, and what is told beside them."""

    run: Run
    mean_ms: float | None = None
    miss_ratios: dict[str, float] = {}
    """The share of rows later than a deadline, by the deadline in seconds."""
    results: Latencies | None = None
    """Latencies of the rows it wrote."""
    batch_max: Latencies | None = None
    """The longest latency of each batch, as the papers count."""
    batch_max_mean_ms: float | None = None
    throughput: float | None = None
    """Rows per second of batch time."""
    cpu_us_per_row: float | None = None
    estimates_off: dict[str, float] = {}
    """By estimator, how far it was off in the middle, as a share of what a batch took."""
    admission: dict[str, float] = {}
    """Of the server's decisions: how late cuts were, what share of batch time they took."""
    spans: list[Span] = []
    """All its batches."""
    measured: list[Span] = []
    """Those cut in the measured stretch."""
    planned: PlannedBatches | None = None
    """Plans of its batches; None where nobody planned them."""
    plan_notes: tuple[str, ...] = ()


def query_runs(
    conditions: Together,
    system: str,
    repeat: int,
    noted: TogetherNoted,
    deadlines_s: Sequence[float],
) -> dict[str, QueryRun]:
    """A record of each query of a run."""
    shares = cpu_shares(conditions, noted)
    made = {}
    for part in conditions.parts:
        mine = noted.parts.get(part.query, PartNoted())
        if noted.report is None:
            run = run_of(conditions.of(part), system, repeat, part_noted(noted, mine))
            made[part.query] = QueryRun(run)
            continue
        from_ms, until_ms = measured_ms(conditions, noted.report)
        until_us = round(until_ms * 1000)
        slope = batch_slope_ms_per_s(mine.rows, round(from_ms * 1000), until_us)
        mine = msgspec.structs.replace(mine, rows=sent_before(mine.rows, until_us))
        run = run_of(conditions.of(part), system, repeat, part_noted(noted, mine))
        busy = busy_share(mine.batches, from_ms, until_ms)
        run = msgspec.structs.replace(run, slope_ms_per_s=slope, busy_share=busy)
        values = row_latencies_ms(mine.rows, round(from_ms * 1000))
        maxima = batch_maxima_ms(mine.rows, round(from_ms * 1000))
        ratios = {f"{bound:g}": miss_ratio(values, bound) for bound in deadlines_s}
        measured = within(mine.batches, from_ms, until_ms)
        made[part.query] = QueryRun(
            run,
            float(values.mean()) if values.size else None,
            {bound: ratio for bound, ratio in ratios.items() if ratio is not None},
            latencies(row_latencies_ms(sent_before(mine.results, until_us), round(from_ms * 1000))),
            latencies(maxima),
            float(maxima.mean()) if maxima.size else None,
            throughput(measured),
            shares.get(part.query),
            mine.estimates_off,
            mine.admission,
            mine.batches,
            measured,
            mine.planned,
            mine.plan_notes,
        )
    return made


def sent_before(sightings: Sequence[Sighting], until_us: int) -> list[Sighting]:
    """The same without rows that were due at that moment or later."""
    kept = [Sighting(batch.seen_us, batch.sent_us[batch.sent_us < until_us]) for batch in sightings]
    return [batch for batch in kept if batch.sent_us.size]


def measured_ms(conditions: Together, report: SenderReport) -> tuple[float, float]:
    """The measured stretch, in milliseconds since the epoch."""
    from_ms = report.started_ms + conditions.warm_up_s * 1000
    return from_ms, from_ms + conditions.measure_s * 1000


def part_noted(noted: TogetherNoted, part: PartNoted) -> Noted:
    """The same as of a query that ran alone; its sightings are its input rows."""
    return Noted(
        part.rows,
        noted.report,
        noted.is_drained,
        part.rows_checked,
        part.rows_different,
        part.differences,
        error=noted.error,
    )


def cpu_shares(conditions: Together, noted: TogetherNoted) -> dict[str, float]:
    """Processor time per input row of each query, in microseconds.

    Driver and server work for all of them; their time is divided by how long the tasks of each ran.
    """
    if noted.cpu_s is None or noted.report is None:
        return {}
    from_ms, until_ms = measured_ms(conditions, noted.report)
    measured = {
        query: within(part.batches, from_ms, until_ms) for query, part in noted.parts.items()
    }
    tasks_ms = {query: sum(span.tasks_ms for span in spans) for query, spans in measured.items()}
    total_ms = sum(tasks_ms.values())
    rows = {query: sum(span.rows for span in spans) for query, spans in measured.items()}
    return {
        query: noted.cpu_s * 1e6 * tasks_ms[query] / total_ms / rows[query]
        for query in measured
        if rows[query] and total_ms
    }


def summed_up(name: str, system: str, repeat: int, rate: int, runs: Mapping[str, QueryRun]) -> Run:
    """All queries of a run as one: the gravest verdict, steepest rise, busiest, worst latency."""
    every = [query_run.run for query_run in runs.values()]
    kind = min((run.verdict.kind for run in every), key=GRAVEST_FIRST.index)
    slopes = [run.slope_ms_per_s for run in every]
    known = [slope for slope in slopes if slope is not None]
    busy = [run.busy_share for run in every if run.busy_share is not None]
    counted = [run for run in every if run.latency is not None]
    worst = max(counted, key=lambda run: run.latency.p99 if run.latency else 0.0, default=every[0])
    reasons = tuple(f"{run.query}: {why}" for run in every for why in run.verdict.reasons)
    return Run(
        name,
        system,
        repeat,
        Verdict(kind, reasons),
        rate,
        sum(run.results for run in every),
        worst.latency,
        slope_ms_per_s=max(known) if len(known) == len(slopes) else None,
        busy_share=max(busy) if len(busy) == len(every) else None,
        sent=every[0].sent,
        lag_ms=every[0].lag_ms,
        rows_checked=sum(run.rows_checked for run in every),
        rows_different=sum(run.rows_different for run in every),
        differences=[difference for run in every for difference in run.differences],
    )
