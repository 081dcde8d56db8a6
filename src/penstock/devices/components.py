"""Parts that the cost of a stage is made of, by name, and their costs before they are measured.

Costs are of one task: milliseconds, and milliseconds for each byte that goes in.
"""

from __future__ import annotations

from penstock.fit.line import Line
from penstock.model.device_plans import Device, OperationKind, PathName

WORKER = "worker"
"""The way from Spark to a Python worker and back, with the scan, without what the worker does."""
TO_GPU = "to_gpu"
TO_CPU = "to_cpu"


def operation_part(kind: OperationKind, device: Device) -> str:
    """The name of an operation's cost on a device."""
    return f"{kind}@{device}"


def device_taken(kind: OperationKind, device: Device) -> Device:
    """The device that an operation runs on where it is wanted on one."""
    return "cpu" if kind in GPU_REFUSES else device


def path_part(path: PathName) -> str:
    """The name of the cost of a whole path through Spark, scan included. Bytes count once for each
    window on `spark`, which makes a row for each of them."""
    return f"path@{path}"


def _line(fixed_ms: float, gb_per_s: float) -> Line:
    return Line(fixed_ms, 1e-6 / gb_per_s)


# Fitted to one core and one large GPU of 2025, over inputs of 4 KB to 16 MB. On the GPU it is
# launches and transfers that count; nothing parses there, and no plan uses that line.
DEFAULT_LINES: dict[str, Line] = {
    "parse@cpu": _line(0.05, 0.1),
    "parse@gpu": _line(0.6, 5.0),
    "filter@cpu": _line(0.04, 1.05),
    "filter@gpu": _line(0.6, 250.0),
    "project@cpu": _line(0.04, 5.0),
    "project@gpu": _line(0.12, 1_000.0),
    "expand@cpu": _line(0.08, 0.53),
    "expand@gpu": _line(0.6, 130.0),
    "aggregate@cpu": _line(0.2, 1.6),
    "aggregate@gpu": _line(1.25, 150.0),
    "join@cpu": _line(0.6, 0.65),
    "join@gpu": _line(1.5, 300.0),
    "sort@cpu": _line(0.09, 0.2),
    "sort@gpu": _line(0.55, 190.0),
    "topk@cpu": _line(0.14, 1.05),
    "topk@gpu": _line(0.43, 100.0),
    TO_GPU: _line(0.12, 8.0),
    TO_CPU: _line(0.12, 10.0),
    WORKER: _line(25.0, 1.0),
    "path@spark": _line(12.0, 0.25),
    "path@panes": _line(15.0, 0.1),
}

GPU_REFUSES: frozenset[OperationKind] = frozenset({"parse"})
"""Kinds of operations that no GPU takes, whatever their columns: they run on the CPU wherever they
are planned."""

OUTPUT_SHARE: dict[OperationKind, float] = {"aggregate": 0.1, "topk": 0.01, "filter": 0.5}
"""The bytes that come out of an operation against those that go in, until it is measured."""
