"""Records of made-up runs of the prefetch suite."""

from __future__ import annotations

from penstock_lab.experiment.filled import FilledRun
from penstock_lab.experiment.record import Kind
from penstock_lab.experiment.state_reads import CacheReads, StateReads
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites.prefetch import SUITE, adaptation
from penstock_lab.suites.prefetch.cells import Cell, Workload
from penstock_lab.suites.prefetch.plans import plan_of
from penstock_lab.suites.prefetch.records import Record
from support.bench_records import at_rate, names_of, run_of

MIB = 2**20
CELL = Cell(Workload("q18"), "high", 1_000)
SPANS = [Span(n, n * 100.0, n * 100.0 + 80.0, 10) for n in range(120)]
COUNTS = CacheReads(
    hits=9,
    misses=1,
    used=8,
    unused=1,
    path_us=6_000,
    hint_bytes=2,
    shuffle_bytes=100,
    lookup_batches=100,
)


def record(
    system: str,
    repeat: int,
    p999: float,
    cell: Cell = CELL,
    kind: Kind = "compared",
    cpu_us_per_row: float = 20.0,
) -> Record:
    """A run whose p99.9, and p99, is that."""
    run = at_rate(run_of(cell.query, system, repeat, p999), cell.rate, 0.0)
    filled_run = FilledRun(
        run, SPANS, SPANS, 1_000.0, cpu_us_per_row, StateReads(119, 9, 1, 5), COUNTS, [COUNTS]
    )
    return Record(cell, run, kind, filled_run=filled_run, state_bytes=80 * MIB)


def overhead_records(ratios: list[float]) -> list[Record]:
    """Turns of ours over off, by processor time."""
    cell = Cell(Workload("q18", series="memory"))
    records = []
    for turn, ratio in enumerate(ratios):
        records.append(record("off", turn, 50.0, cell, "overhead", 10.0))
        records.append(record("prefetch", turn, 50.0, cell, "overhead", 10.0 * ratio))
    return records


def adaptation_record(active_from: dict[int, str], shifts: dict[str, int]) -> Record:
    """A run in which other candidates are active from some batches on."""
    cell = Cell(adaptation.workload())
    samples = []
    for batch in range(min(active_from), 90):
        since = max(start for start in active_from if start <= batch)
        active = active_from[since]
        samples.append(
            CacheReads(hits=9, misses=1, active=active, moved_after=since - 1, batch=batch)
        )
    run = run_of(cell.query, "prefetch", 0, 50.0)
    filled_run = FilledRun(run, SPANS, SPANS, stretches=samples)
    return Record(cell, run, "adaptation", filled_run=filled_run, shifts=shifts)


def prefetch_names() -> set[str]:
    """Names of the figures of a quick plan with a workload of either kind."""
    lookup = Cell(Workload("ysb"), "high", 1_000)
    records = [
        record(system, 0, 50.0, cell)
        for cell in (CELL, lookup)
        for system in ("asyncio", "prefetch")
    ]
    records += [
        record(system, 0, 50.0, Cell(CELL.workload), "backlog")
        for system in ("lru", "asyncio-lru", "prefetch")
    ]
    records += overhead_records([1.0, 1.01])
    records.append(adaptation_record({30: "A", 34: "CD", 65: "D"}, {"accuracy": 31, "timing": 60}))
    return names_of(SUITE, plan_of(quick=True), records)
