"""Measurements of single operations on a device, over rows that are made up and always the same.

They go the way that the steps of a query go: the same execution, the same transfers. Operations
that a GPU does not take are measured as they would run if they were planned for it, on the CPU.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import lru_cache

import msgspec
import numpy as np
import pyarrow as pa

from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Call, Column, Literal
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.operators.types import arrow_type
from penstock.devices.pipeline import (
    DEVICE_MODULES,
    Expand,
    Filter,
    Grouped,
    Joined,
    Parse,
    Pipeline,
    Project,
    Sorted,
    Step,
    execution_on,
)
from penstock.model.device_plans import Device, OperationKind

SEED = 7
KEYS, PANES, TABLE_ROWS, TOP, COPIES = 1_000, 12, 1_000, 100, 4
PANE_US = 5_000_000
AT, KEY, AMOUNT, NUMBER = (Column(place) for place in range(4))
FIELDS = (("key", "bigint"), ("amount", "double"), ("number", "int"))
US_PER_MS = 1_000
GPU_MODULE = DEVICE_MODULES["gpu"]


class OperationTiming(msgspec.Struct, frozen=True):
    """One run of an operation: `bytes` went in, and rows were moved to a GPU and back for it."""

    device: Device
    kind: OperationKind
    rows: int
    bytes: int
    ms: float
    to_gpu_ms: float = 0.0
    to_gpu_bytes: int = 0
    to_cpu_ms: float = 0.0
    to_cpu_bytes: int = 0


def measure(device: Device, kind: OperationKind, rows: int) -> OperationTiming:
    """One run of an operation over so many rows. The first on a device also loads what it needs;
    DeviceRefused where there is no such device."""
    table = parse_input(rows) if kind == "parse" else input_rows(rows)
    _, report = execution_on(device)(Pipeline((STEPS[kind](),), device), table)
    return OperationTiming(
        device,
        kind,
        rows,
        report.step_bytes[0],
        report.step_us[0] / US_PER_MS,
        report.to_gpu_us / US_PER_MS,
        report.to_gpu_bytes,
        report.to_cpu_us / US_PER_MS,
        report.to_cpu_bytes,
    )


def gpu_refusal(kind: OperationKind) -> str | None:
    """The thing in an operation that a GPU does not take, so that it runs on the CPU wherever it is
    planned; None if it takes it."""
    table = parse_input(1) if kind == "parse" else input_rows(1)
    types = [column.type for column in table.columns]
    refusal: str | None = importlib.import_module(GPU_MODULE).refusal(STEPS[kind](), types)
    return refusal


@lru_cache(maxsize=1)
def input_rows(rows: int) -> Rows:
    """Times of some panes, keys, amounts and numbers, 32 bytes a row."""
    numbers = np.random.default_rng(SEED)
    times = numbers.integers(0, PANES, rows) * PANE_US
    columns = (
        pa.array(times, pa.int64()).cast(arrow_type("timestamp")),
        pa.array(numbers.integers(0, KEYS, rows)),
        pa.array(numbers.random(rows)),
        pa.array(numbers.integers(0, rows + 1, rows)),
    )
    return Rows(columns, rows)


@lru_cache(maxsize=1)
def parse_input(rows: int) -> Rows:
    """Lines of CSV with a key, an amount and a number."""
    numbers = np.random.default_rng(SEED)
    keys, amounts = numbers.integers(0, KEYS, rows), numbers.random(rows)
    lines = [f"{key},{amount:.6f},{key % TOP}" for key, amount in zip(keys, amounts, strict=True)]
    return Rows((pa.array(lines, pa.string()),), rows)


@lru_cache(maxsize=1)
def table_stream() -> bytes:
    """A static table with a row for each key."""
    keys = np.arange(TABLE_ROWS)
    table = pa.table({"key": pa.array(keys), "factor": pa.array(keys / TABLE_ROWS)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _project() -> Step:
    pane = Call("pane", "timestamp", (AT,), parameters=(PANE_US, 0))
    doubled = Call("multiply", "double", (AMOUNT, Literal("double", "2.0")))
    return Project((pane, KEY, doubled, NUMBER))


def _expand() -> Step:
    return Expand(
        tuple(
            (AT, Call("add", "bigint", (KEY, Literal("bigint", copy))), AMOUNT, NUMBER)
            for copy in range(COPIES)
        )
    )


def _aggregate() -> Step:
    mean = Aggregate("mean", (AMOUNT,), "double", "double")
    total = Aggregate("sum", (NUMBER,), "bigint", "bigint", is_ansi=True)
    return Grouped((AT, KEY), (mean, total))


STEPS: dict[OperationKind, Callable[[], Step]] = {
    "parse": lambda: Parse(Column(0), "csv", FIELDS),
    "filter": lambda: Filter(Call("less", "boolean", (AMOUNT, Literal("double", "0.5")))),
    "project": _project,
    "expand": _expand,
    "aggregate": _aggregate,
    "join": lambda: Joined((KEY,), table_stream(), (Column(0),)),
    "sort": lambda: Sorted((SortKey(AMOUNT),)),
    "topk": lambda: Sorted((SortKey(AMOUNT),), TOP),
}
