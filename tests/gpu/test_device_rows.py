"""Aggregates, joins, orders and expansions on a device yield the rows that they do on the CPU."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from penstock.devices.gpu.execution import Gpu, execute
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Call
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    EventTime,
    Expand,
    Filter,
    Grouped,
    Joined,
    Pipeline,
    Project,
    Sorted,
    Step,
)
from penstock.devices.pipeline import execute as execute_on_cpu
from support.columns import call, column, listed, literal
from support.random_columns import KINDS, PLACES, tables

KEYS = st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True)
IS_SET = column(PLACES["boolean"])
DAY_US = 86_400_000_000


def run_on(steps: tuple[Step, ...], table: Rows, gpu: Gpu) -> list[tuple[Any, ...]]:
    made, report = execute(Pipeline(steps), table, gpu=gpu)
    assert report.step_devices == ()
    assert report.rows == table.count
    assert len(report.step_us) == len(report.step_rows) == len(report.step_bytes) == len(steps)
    return listed(made)


def run_on_cpu(steps: tuple[Step, ...], table: Rows) -> list[tuple[Any, ...]]:
    return listed(execute_on_cpu(Pipeline(steps), table)[0])


def of(function: str, kind: str, buffer: str, **more: Any) -> Aggregate:
    return Aggregate(function, (column(PLACES[kind]),), kind, buffer, **more)


SUMS = (
    of("sum", "tinyint", "bigint", is_ansi=True),
    of("sum", "bigint", "bigint"),
    of("sum", "double", "double"),
    of("sum", "float", "double"),
    of("sum", "decimal(12,2)", "decimal(22,2)"),
    of("sum", "decimal(18,4)", "decimal(28,4)", where=IS_SET),
    of("mean", "int", "double"),
    of("mean", "double", "double", where=IS_SET),
    of("mean", "decimal(18,4)", "decimal(28,4)"),
    Aggregate("count", (literal("int", 1),), "int", "bigint"),
    Aggregate("count", (column(PLACES["string"]), column(1)), "string", "bigint", where=IS_SET),
)
EXTREMES = tuple(
    of(function, kind, kind, where=where)
    for function in ("min", "max")
    for kind in KINDS
    for where in (None, IS_SET)
)


def by_key(groups: list[tuple[Any, ...]], keys: int) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Groups by their keys; each occurs once."""
    buffers = {row[:keys]: row[keys:] for row in groups}
    assert len(buffers) == len(groups)
    return buffers


def keyed(kind: str) -> Any:
    """A key as Spark's plans have it."""
    is_fraction = kind in ("float", "double")
    return call("normalized", kind, column(PLACES[kind])) if is_fraction else column(PLACES[kind])


@given(table=tables(30), kinds=KEYS)
def test_groups_have_the_buffers_of_the_cpu(gpu: Gpu, table: Rows, kinds: list[str]) -> None:
    steps = (Grouped(tuple(keyed(kind) for kind in kinds), (*SUMS, *EXTREMES)),)
    assert by_key(run_on(steps, table, gpu), len(kinds)) == by_key(
        run_on_cpu(steps, table), len(kinds)
    )


@given(table=tables(30))
def test_a_key_with_few_values_has_large_groups(gpu: Gpu, table: Rows) -> None:
    steps = (Grouped((IS_SET,), SUMS),)
    assert by_key(run_on(steps, table, gpu), 1) == by_key(run_on_cpu(steps, table), 1)


def stream_of(table: Rows) -> bytes:
    names = [f"c{place}" for place in range(len(table.columns))]
    batch = pa.RecordBatch.from_arrays(list(table.columns), names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@given(table=tables(15), static=tables(15), kinds=KEYS, how=st.sampled_from(["inner", "left"]))
def test_a_join_has_the_rows_of_the_cpu_in_their_order(
    gpu: Gpu, table: Rows, static: Rows, kinds: list[str], how: Any
) -> None:
    keys = tuple(column(PLACES[kind]) for kind in kinds)
    steps = (Joined(keys, stream_of(static), keys, how),)
    assert run_on(steps, table, gpu) == run_on_cpu(steps, table)


@given(
    table=tables(20),
    kinds=KEYS,
    is_descending=st.booleans(),
    is_null_first=st.sampled_from([None, True, False]),
    count=st.one_of(st.none(), st.integers(0, 25)),
)
def test_rows_are_in_the_order_of_the_cpu(
    gpu: Gpu,
    table: Rows,
    kinds: list[str],
    is_descending: bool,
    is_null_first: bool | None,
    count: int | None,
) -> None:
    keys = tuple(
        SortKey(column(PLACES[kind]), is_descending != bool(place % 2), is_null_first)
        for place, kind in enumerate(kinds)
    )
    assert run_on((Sorted(keys, count),), table, gpu) == run_on_cpu((Sorted(keys, count),), table)


@given(table=tables())
def test_expansion_keeps_the_copies_of_a_row_together(gpu: Gpu, table: Rows) -> None:
    text, number = column(PLACES["string"]), column(PLACES["int"])
    steps = (
        Expand(
            (
                (number, text, literal("string", "x")),
                (literal("int", None), literal("string", "é"), text),
            )
        ),
    )
    assert run_on(steps, table, gpu) == run_on_cpu(steps, table)


def by_starts(windows: int) -> tuple[Step, ...]:
    """Sums by pane, or by each of so many windows of a row."""
    at, text = column(PLACES["timestamp"]), column(PLACES["string"])
    copies = tuple(
        (
            Call("pane", "timestamp", (at,), parameters=(windows * DAY_US, place * DAY_US)),
            *(text, column(PLACES["bigint"])),
        )
        for place in range(windows)
    )
    return (
        EventTime(at),
        Filter(call("is_not_null", "boolean", at)),
        Project(copies[0]) if windows == 1 else Expand(copies),
        Grouped(
            (column(0), column(1)),
            (Aggregate("sum", (column(2),), "bigint", "bigint"),),
        ),
    )


@given(table=tables(30), windows=st.sampled_from([1, 3]))
def test_a_chain_of_steps_notes_times_and_stays_on_the_device(
    gpu: Gpu, table: Rows, windows: int
) -> None:
    pipeline = Pipeline(by_starts(windows))
    made, report = execute(pipeline, table, gpu=gpu)
    theirs, cpu_report = execute_on_cpu(pipeline, table)
    assert by_key(listed(made), 2) == by_key(listed(theirs), 2)
    assert [each.type for each in made.columns] == [each.type for each in theirs.columns]
    (times,), (cpu_times,) = report.event_times, cpu_report.event_times
    assert (times is None) == (cpu_times is None)
    if times is not None and cpu_times is not None:
        assert (times.count, times.min_ms, times.max_ms) == (
            cpu_times.count, cpu_times.min_ms, cpu_times.max_ms,
        )  # fmt: skip
        assert abs(times.mean_ms - cpu_times.mean_ms) < 1.0
    assert report.step_rows == cpu_report.step_rows
