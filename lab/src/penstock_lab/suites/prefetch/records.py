"""Records of the prefetch suite: a run from a filled state, and how it stands in the file."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment.filled import FilledRun
from penstock_lab.experiment.record import Measured, in_file
from penstock_lab.experiment.visible_rows import Span
from penstock_lab.suites.prefetch.cells import Cell


class Record(Measured[Cell], frozen=True, kw_only=True):
    """A run from a filled state, and the size of that."""

    filled_run: FilledRun
    state_bytes: int = 0
    shifts: dict[str, int] = msgspec.field(default_factory=dict)
    """By name: the first batch of a run after something had changed in it."""

    @property
    def is_bound(self) -> bool:
        """Whether its latencies are a lower bound: it fell behind, and nothing else was wrong."""
        return self.run.verdict.kind == "stalled" and self.run.latency is not None


def for_file(record: Record) -> dict[str, Any]:
    """A run for the result file, its batches as columns so that the file stays small."""
    run = record.filled_run
    columns = {name: [getattr(s, name) for s in run.spans] for name in Span.__struct_fields__}
    return {
        **in_file(record.run),
        "kind": record.kind,
        "cell": record.cell.name,
        "state_bytes": record.state_bytes,
        "falls_behind": run.is_behind,
        "throughput": run.throughput,
        "cpu_us_per_row": run.cpu_us_per_row,
        "rocksdb": msgspec.to_builtins(run.reads),
        "cache": msgspec.to_builtins(run.cache),
        "stretches": msgspec.to_builtins(run.stretches),
        "spans": columns,
        "measured": len(run.measured),
        "shifts": record.shifts,
    }
