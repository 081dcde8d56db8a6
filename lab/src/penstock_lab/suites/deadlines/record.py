"""Record of a run in the deadlines suite, as the result file and a simulation take it."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment.record import Measured, as_columns, in_file
from penstock_lab.experiment.together import QueryRun
from penstock_lab.experiment.visible_rows import Recovery, Span
from penstock_lab.suites.deadlines.cells import CORES, Cell
from penstock_lab.suites.deadlines.modes import MODES

SIMULATED_BATCHES_MIN = 8
"""With fewer batches of a query no model can be fitted to them."""


class Record(Measured[Cell], frozen=True):
    """A run of all queries as one, and each of them."""

    queries: dict[str, QueryRun] = msgspec.field(default_factory=dict)
    recoveries: dict[str, Recovery] = msgspec.field(default_factory=dict)
    """By query, how it came back after a burst or a backlog."""
    started_ms: float = 0.0
    """When the queries were started, since the epoch."""


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    queries = {}
    for name, query_run in record.queries.items():
        built = msgspec.to_builtins(query_run)
        queries[name] = {
            **built,
            "run": in_file(query_run.run),
            "spans": as_columns(Span, query_run.spans),
            "measured": len(query_run.measured),
        }
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        "queries": queries,
        "recoveries": msgspec.to_builtins(record.recoveries),
        "measured_run": for_simulation(record),
    }


def for_simulation(record: Record) -> dict[str, Any] | None:
    """The run as `penstock simulate --measured` takes it; None where it has too few batches."""
    mode = MODES[record.system]
    bound_ms = record.cell.deadline_s * 1000
    each = []
    for name, query_run in record.queries.items():
        batches = [span for span in query_run.measured if not query_run.run.verdict.reasons]
        if sum(span.rows > 0 for span in batches) < SIMULATED_BATCHES_MIN:
            return None
        each.append(
            {
                "name": name,
                "policy": mode.policy or ("fixed" if mode.is_timed else "asap"),
                "deadline_ms": bound_ms if mode.policy else None,
                "interval_ms": bound_ms
                if mode.is_timed and mode.policy in (None, "fixed")
                else None,
                "batches": [simulated_batch(span) for span in batches],
            }
        )
    if record.kind != "compared":
        return None
    order = "fifo" if mode.process == "tuned" else mode.process
    title = f"{record.cell.words}: {mode.name}, repeat {record.repeat + 1}"
    return {"cores": CORES, "order": order, "queries": each, "title": title}


def simulated_batch(span: Span) -> dict[str, float]:
    return {
        "cut_at_ms": span.cut_ms,
        "visible_at_ms": span.visible_ms,
        "rows": span.rows,
        "planning_ms": span.planning_ms,
        "core_ms": span.tasks_ms,
        "queued_ms": span.queued_ms,
    }
