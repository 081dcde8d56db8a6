"""Runs of the paper suite: MiSA's part on Spark, then Impeller's on task graphs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from penstock_lab.experiment.record import Kind
from penstock_lab.experiment.turns import Steps, Tell
from penstock_lab.suites.paper import batch_runs, graph_runs
from penstock_lab.suites.paper.batch_runs import Open
from penstock_lab.suites.paper.batch_runs import Record as BatchRecord
from penstock_lab.suites.paper.cells import Plan
from penstock_lab.suites.paper.graph_runs import Recovered
from penstock_lab.suites.protocols import runs as protocols_runs
from penstock_lab.suites.protocols.runs import Record as GraphRecord

Record: TypeAlias = BatchRecord | GraphRecord | Recovered


def runs(plan: Plan, folder: Path, tell: Tell, opening: Open = batch_runs.rig) -> Steps[Record]:
    parts: list[Steps[Any]] = []
    if plan.batches is not None:
        parts.append(batch_runs.runs(plan.batches, folder, opening))
    if plan.graphs is not None:
        parts.append(graph_runs.runs(plan.graphs, folder, tell))
    for part in parts:
        yield from part


def for_file(record: Record) -> dict[str, Any]:
    if isinstance(record, BatchRecord):
        return batch_runs.for_file(record)
    if isinstance(record, GraphRecord):
        return {**protocols_runs.for_file(record), "kind": record.kind}
    return {"measured": "recovery", **record.took}


def is_right(record: Record) -> bool:
    return isinstance(record, Recovered) or record.is_right


def of_batches(records: Sequence[Record], kind: Kind = "compared") -> list[BatchRecord]:
    return [each for each in records if isinstance(each, BatchRecord) and each.kind == kind]


def of_graphs(records: Sequence[Record], kind: Kind = "compared") -> list[GraphRecord]:
    return [each for each in records if isinstance(each, GraphRecord) and each.kind == kind]
