"""Figures of MiSA's part from its runs. Pure.

A ratio is theirs over ours, so that above 1 is ahead. A baseline that fell so far behind that its
input was never worked off counts with what its batches took until then, a lower bound; ours never
does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from penstock_lab.experiment.batch_times import growth
from penstock_lab.experiment.figures import (
    SHARE,
    Figure,
    Goal,
    Ratio,
    latency_p50,
    latency_p99,
    medians,
    ordered,
    ratios,
)
from penstock_lab.experiment.losses import beside
from penstock_lab.experiment.search import tried_of
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.percentiles import percentile
from penstock_lab.suites.paper.batch_runs import Record, chosen_rate, sustained
from penstock_lab.suites.paper.cells import LABELS, OURS, PAPERS, Batches, Cell
from penstock_lab.suites.paper.papers import (
    BATCH_RATIO,
    OVER_DEFAULT,
    PARTITIONS,
    RECORD_BYTES,
    TRIGGER_S,
    UNDER_FULL,
)
from penstock_lab.suites.paper.store import MEASURED_ON

OK = Verdict("ok")
MS_IN_S, KB = 1000.0, 1000.0
GROWN_BEHIND = 4
"""A query is behind if the median of this last part of its batches is longer than the trigger."""


def batch_p50(record: Record) -> float | None:
    return percentile(record.took_ms, 50)


def batch_p99(record: Record) -> float | None:
    return percentile(record.took_ms, 99)


def commit_p99(record: Record) -> float | None:
    return percentile([batch.state_ms for batch in record.measured], 99)


def throughput(record: Record) -> float | None:
    """Bytes of a batch over its time, in the mean of the batches, as the paper has it."""
    each = [
        batch.rows * RECORD_BYTES / KB / (batch.took_ms / MS_IN_S)
        for batch in record.measured
        if batch.took_ms > 0
    ]
    return sum(each) / len(each) if each else None


def late_share(record: Record) -> float | None:
    """The share of batches that took longer than the trigger's interval."""
    took_ms = record.took_ms
    return sum(ms > TRIGGER_S * MS_IN_S for ms in took_ms) / len(took_ms) if took_ms else None


def cpu_cores(record: Record) -> float | None:
    """Cores that driver and server kept busy in the measured stretch."""
    if record.cpu_s is None or not record.seconds:
        return None
    return record.cpu_s / record.seconds


def visible_p50(record: Record) -> float | None:
    return latency_p50(record) if record.cell.has_latency else None


def visible_p99(record: Record) -> float | None:
    return latency_p99(record) if record.cell.has_latency else None


FIGURES = (
    ("batch_p50_ms", "ms", "time of a micro-batch, median", batch_p50),
    ("batch_p99_ms", "ms", "time of a micro-batch, 99 of 100", batch_p99),
    (
        *("batch_growth", "x", "median batch of the last quarter over the first"),
        lambda record: growth(record.took_ms),
    ),
    ("late_share", SHARE, "batches longer than the trigger's interval", late_share),
    ("commit_p99_ms", "ms", "commit of the state of a batch, summed over its tasks", commit_p99),
    ("throughput_kb_per_s", "kB/s", "bytes of a batch over its time, mean", throughput),
    ("cpu_cores", "cores", "kept busy by driver and server", cpu_cores),
    ("rss_mb", "MB", "most memory of the JVM in a run", lambda record: record.rss_mb),
    ("event_p50_ms", "ms", "event-time latency of visible results, median", visible_p50),
    ("event_p99_ms", "ms", "event-time latency of visible results, 99 of 100", visible_p99),
)


def per_cell(compared: Sequence[Record]) -> list[Figure]:
    """Times, throughput and resources of every system at every cell."""
    made: list[Figure] = []
    for cell in ordered(record.cell for record in compared):
        for system in ordered(record.system for record in compared if record.cell == cell):
            mine = [r for r in compared if (r.cell, r.system) == (cell, system)]
            made += medians(f"{cell.name}.{system}", mine, FIGURES)
    return made


def with_bounds(records: Sequence[Record]) -> list[Record]:
    """The records, baselines that fell behind among those that count."""
    return [
        msgspec.structs.replace(record, run=msgspec.structs.replace(record.run, verdict=OK))
        if record.is_bound and record.system != OURS
        else record
        for record in records
    ]


def stores(plan: Batches | None, records: Sequence[Record]) -> list[Figure]:
    """Checkpoints of every query, and how slow the store was made for them."""
    made: list[Figure] = []
    for record in records:
        calibration = record.calibration(plan.partitions) if plan is not None else None
        if calibration is None:
            continue
        name = f"{record.cell.name}.store"
        for key, unit, value in (
            ("checkpoint_kb", "kB", calibration.partition_bytes / KB),
            ("checkpoint_ms", "ms", calibration.commit_ms),
            ("ms_per_operation", "ms", calibration.ms_per_operation),
            ("ms_per_mb", "ms", calibration.ms_per_mb),
        ):
            made.append(Figure(f"{name}.{key}", unit, calibration.words, value))
    return made


def lr2_rate(records: Sequence[Record]) -> list[Figure]:
    """The rate of LR2, and what it was found from."""
    by_system = {
        system: tried_of(record.run for record in records if record.system == system)
        for system in ("default", OURS)
    }
    made = [
        Figure(
            f"LR2.{system}.sustained_per_s", "events/s",
            "highest rate that held: " + ", ".join(f"{t.rate:,} {t.how}" for t in tried),
            float(sustained(tried)),
        )
        for system, tried in by_system.items()
        if tried
    ]  # fmt: skip
    if len(made) == len(by_system):
        rate = chosen_rate(by_system["default"], by_system[OURS])
        sentence = f"{OVER_DEFAULT:g} times what default sustains, at most {UNDER_FULL:g} of {OURS}"
        made.append(Figure("LR2.rate_per_s", "events/s", sentence, float(rate)))
    return made


def batch_ratios(compared: Sequence[Record], uncalibrated: Collection[str] = ()) -> list[Figure]:
    """The ratio of every cell, and the headlines. Cells of `uncalibrated` queries, which ran on a
    store that is not the paper's, say so and enter no headline."""
    by_cell: list[Ratio[Cell]] = ratios(compared, PAPERS, OURS, batch_p99)
    sentence = f"p99 of batch time, worst of the others over {OURS}"
    made = []
    for ratio in by_cell:
        words = f"{sentence}; {survivors(compared, ratio.cell)}"
        if ratio.cell.query in uncalibrated:
            words += f"; {on_measured_store(ratio.cell.query)}"
        name = f"{ratio.cell.name}.batch_p99_ratio"
        made.append(Figure(name, "x", words, ratio.value, ratio.repeats))
    calibrated = [ratio for ratio in by_cell if ratio.cell.query not in uncalibrated]
    if calibrated:
        most = max(calibrated, key=lambda ratio: ratio.value)
        words = f"{sentence}, most: {most.cell.words}{bounded(compared, most.cell)}; "
        words += survivors(compared, most.cell)
        goal = Goal("at least", BATCH_RATIO)
        name = "headline.batch_p99_ratio_max"
        made.append(Figure(name, "x", words, most.value, most.repeats, goal))
    on_paper_store = [record for record in compared if record.cell.query not in uncalibrated]
    return [*made, *throughput_ratio(on_paper_store)]


def uncalibrated_queries(plan: Batches | None, records: Sequence[Record]) -> tuple[str, ...]:
    """Queries whose runs for the calibration told no store, so that those that are compared are on
    the store that checkpoints are measured on."""
    partitions = PARTITIONS if plan is None else plan.partitions
    none_told = [record for record in records if record.calibration(partitions) is None]
    return tuple(ordered(record.cell.query for record in none_told))


def on_measured_store(query: str) -> str:
    """A clause for what was measured though no store could be made for the query."""
    return (
        f"no run told the checkpoints of {LABELS[query]}, so it is on {MEASURED_ON} and not on a "
        "store as slow as the paper's"
    )


def survivors(compared: Sequence[Record], cell: Cell) -> str:
    """A clause on where the systems of a cell have the state of what is visible."""
    names = {record.system for record in compared if record.cell == cell and record.is_counted}
    return beside(*(name for name in (*PAPERS, OURS) if name in names))


def bounded(compared: Sequence[Record], cell: Cell) -> str:
    """A word on baselines that are in a cell as a lower bound."""
    names = ordered(r.system for r in compared if r.cell == cell and is_behind(r))
    if OURS in names:
        return f"; no bound either way, because {', '.join(names)} fell behind"
    return f"; a lower bound, because {', '.join(names)} fell behind" if names else ""


def is_behind(record: Record) -> bool:
    took_ms = record.took_ms
    last = took_ms[-max(1, len(took_ms) // GROWN_BEHIND) :]
    return (percentile(last, 50) or 0.0) > TRIGGER_S * MS_IN_S


def throughput_ratio(compared: Sequence[Record]) -> list[Figure]:
    def time_per_kb(record: Record) -> float | None:
        rate = throughput(record)
        return None if not rate else 1 / rate

    by_cell: list[Ratio[Cell]] = ratios(compared, PAPERS, OURS, time_per_kb)
    if not by_cell:
        return []
    most = max(by_cell, key=lambda ratio: ratio.value)
    words = f"bytes of a batch over its time, {OURS} over the worst of the others, most: "
    words += f"{most.cell.words}; {survivors(compared, most.cell)}"
    name = "headline.throughput_ratio_max"
    return [Figure(name, "x", words, most.value, most.repeats)]
