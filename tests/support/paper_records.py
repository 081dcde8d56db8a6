"""Records of made-up runs of the paper suite, and the names of the figures they give."""

from __future__ import annotations

import msgspec

from penstock_lab.experiment.batch_times import Timed
from penstock_lab.experiment.latency import Latencies
from penstock_lab.experiment.record import Kind, Run
from penstock_lab.experiment.verdict import Kind as VerdictKind
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.suites import paper
from penstock_lab.suites.paper.batch_runs import Record as BatchRecord
from penstock_lab.suites.paper.cells import CM1, LR2, SYSTEMS, Cell
from penstock_lab.suites.paper.graph_runs import Recovered
from penstock_lab.suites.paper.plans import plan_of
from penstock_lab.suites.paper.runs import Record
from penstock_lab.suites.protocols.cells import Cell as GraphCell
from penstock_lab.suites.protocols.runs import Record as GraphRecord

HEAVY = Cell(CM1, 2_500)
ROWS = 7_500
"""Of a batch at that rate."""
RECOVERED = Recovered(
    {
        "changes": 10,
        "with_ms": [200.0],
        "without_ms": [1_000.0],
        "warm_with_ms": [50.0],
        "warm_without_ms": [900.0],
    }
)


def batch_record(
    cell: Cell,
    system: str,
    took_ms: float,
    repeat: int = 0,
    kind: Kind = "compared",
    verdict: VerdictKind = "ok",
    slope: float = 0.0,
) -> BatchRecord:
    """A run of eight batches, all of which took as long."""
    latency = Latencies(100, took_ms, took_ms, took_ms, took_ms, took_ms)
    batches = [Timed(number, number * 3_000, ROWS, took_ms, 400.0) for number in range(8)]
    run = Run(
        *(cell.query, system, repeat, Verdict(verdict), cell.rate, 100, latency),
        slope_ms_per_s=slope,
        lag_ms=[1.0],
    )
    return BatchRecord(
        *(cell, run, kind, batches, batches),
        rss_mb=500.0,
        cpu_s=12.0,
        seconds=24.0,
        snapshot_bytes=[160_000] * 8,
    )


def graph_record(
    cell: GraphCell, protocol: str, p50: float, rate: int = 2_000, kind: Kind = "compared"
) -> GraphRecord:
    latency = Latencies(100, p50, p50, 2 * p50, 2 * p50, 2 * p50)
    run = Run(cell.query, protocol, 0, Verdict("ok"), rate, 100, latency, lag_ms=[1.0])
    return GraphRecord(cell, run, kind, commits_per_s=90.0)


def paper_records() -> list[Record]:
    """One run of each kind of a quick plan, on every system."""
    lr2 = Cell(LR2, 1_800)
    records: list[Record] = [
        batch_record(HEAVY, "default", 900.0, kind="calibration"),
        *(batch_record(HEAVY, system, 3_000.0) for system in SYSTEMS[:-1]),
        batch_record(HEAVY, "full", 300.0),
        batch_record(msgspec.structs.replace(lr2, rate=1_500), "default", 900.0, 0, "calibration"),
        batch_record(msgspec.structs.replace(lr2, rate=1_500), "default", 2_900.0, 0, "sustain"),
        batch_record(msgspec.structs.replace(lr2, rate=2_250), "full", 900.0, 0, "sustain"),
        batch_record(lr2, "default", 3_900.0),
        batch_record(lr2, "full", 900.0),
    ]
    protocols = ("marker", "transaction", "aligned", "unsafe")
    for query in ("q4", "q8"):
        records += [
            graph_record(GraphCell(query, 100), name, 100.0, rate, "sustain")
            for rate in (1_000, 2_000)
            for name in protocols[:2]
        ]
        records += [graph_record(GraphCell(query, 10), name, 20.0) for name in protocols]
    return [*records, RECOVERED]


def paper_names() -> set[str]:
    names = [figure.name for figure in paper.SUITE.figures(plan_of(quick=True), paper_records())]
    assert len(names) == len(set(names))
    return set(names)
