"""Engines on a GPU for the comparison of operations: ours by CuPy, and cuDF where it is installed.

Both get Arrow rows and give Arrow back, transfers included.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from penstock.devices.gpu import execute
from penstock.devices.gpu.worker_gpu import HERE
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Call, Column, Literal
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    DeviceRefused,
    Filter,
    Grouped,
    Joined,
    Pipeline,
    Project,
    Sorted,
    Step,
)

AT, KEY, LINK, NUMBER, AMOUNT = (Column(place) for place in range(5))


def ours(slide_us: int, top: int) -> dict[str, Callable[[pa.Table, pa.Table], Any]]:
    """The operations of pipelines; an ImportError where there is no GPU."""
    try:
        with HERE.used(workers=1):
            pass
    except DeviceRefused as refusal:
        raise ImportError(refusal.text) from refusal

    def run(table: pa.Table, *steps: Step) -> pa.Table:
        columns = tuple(column.combine_chunks() for column in table.columns)
        made, _ = execute(Pipeline(steps), Rows(columns, table.num_rows))
        names = [f"c{place}" for place in range(len(made.columns))]
        return pa.Table.from_arrays(list(made.columns), names)

    is_wanted = Call(
        "and",
        "boolean",
        (
            Call("greater", "boolean", (AMOUNT, Literal("double", "0.5"))),
            Call("less", "boolean", (NUMBER, Literal("bigint", 500))),
        ),
    )
    pane = Call("pane", "timestamp", (AT,), parameters=(slide_us, 0))
    sums = (
        Aggregate("sum", (Column(2),), "bigint", "bigint"),
        Aggregate("mean", (Column(3),), "double", "double"),
        Aggregate("max", (Column(3),), "double", "double"),
    )
    return {
        "filter": lambda t, _: run(t, Filter(is_wanted)),
        "pane aggregate": lambda t, _: run(
            t, Project((pane, KEY, NUMBER, AMOUNT)), Grouped((Column(0), Column(1)), sums)
        ),
        "join": lambda t, other: run(t, Joined((LINK,), _stream(other), (Column(0),))),
        "sort": lambda t, _: run(t, Sorted((SortKey(AMOUNT),))),
        f"top {top}": lambda t, _: run(t, Sorted((SortKey(AMOUNT, is_descending=True),), top)),
    }


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def cudf(slide_us: int, top: int) -> dict[str, Callable[[pa.Table, pa.Table], Any]]:
    """The same in cuDF; an ImportError where it is not installed."""
    library: Any = importlib.import_module("cudf")

    def frame(table: pa.Table) -> Any:
        return library.DataFrame.from_arrow(table)

    def kept(table: pa.Table, _: pa.Table) -> Any:
        rows = frame(table)
        return rows[(rows["x"] > 0.5) & (rows["i"] < 500)].to_arrow()

    def panes(table: pa.Table, _: pa.Table) -> Any:
        times = table["at"].cast(pa.int64())
        rows = frame(table.set_column(0, "at", times))
        rows["pane"] = rows["at"] // slide_us * slide_us
        grouped = rows.groupby(["pane", "k"]).agg({"i": "sum", "x": ["sum", "count", "max"]})
        grouped.columns = ["i", "sum", "count", "max"]
        return grouped.reset_index().to_arrow()

    return {
        "filter": kept,
        "pane aggregate": panes,
        "join": lambda t, other: frame(t).merge(frame(other), on="j").to_arrow(),
        "sort": lambda t, _: frame(t).sort_values("x").to_arrow(),
        f"top {top}": lambda t, _: frame(t).nlargest(top, "x").to_arrow(),
    }
