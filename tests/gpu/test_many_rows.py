"""So many rows that a kernel has more than its threads: the same as on the CPU."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from penstock.devices.gpu.cuda import Cuda
from penstock.devices.gpu.execution import Gpu, execute, in_parts
from penstock.devices.gpu.worker_gpu import WorkerGpu
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import Expand, Filter, Grouped, Joined, Pipeline, Sorted, Step
from penstock.devices.pipeline import execute as execute_on_cpu
from support.columns import call, column, literal

ROWS, ROWS_OF_NUMPY = 2_200_000, 5_000
"""More than a grid has threads; and as many as take no time without a GPU."""
POOL_BYTES = 64 << 20
FEW, MANY, TEXT, NUMBER, AMOUNT = (column(place) for place in range(5))


@lru_cache(maxsize=1)
def table(count: int) -> Rows:
    """Keys with few and with many values, a text, numbers up to the largest, and fractions of
    which sums are exact in any order; some are null."""
    luck = np.random.default_rng(5)
    numbers = luck.integers(-(2**40), 2**40, count)
    numbers[:2] = -(2**63), 2**63 - 1
    columns = (
        pa.array(luck.integers(0, 3, count).astype(np.int32)),
        pa.array(luck.integers(0, count, count), mask=luck.random(count) < 0.1),
        pa.array([f"text {place}" for place in range(50)]).take(
            pa.array(luck.integers(0, 50, count))
        ),
        pa.array(numbers),
        pa.array(luck.integers(-4_000, 4_000, count) / 4, mask=luck.random(count) < 0.1),
    )
    return Rows(columns, count)


def rows_for(gpu: Gpu) -> Rows:
    return table(ROWS if isinstance(gpu, WorkerGpu) else ROWS_OF_NUMPY)


def arrow_table(rows: Rows) -> pa.Table:
    names = [f"c{place}" for place in range(len(rows.columns))]
    return pa.Table.from_arrays(list(rows.columns), names)


FUNCTIONS = (
    Aggregate("count", (AMOUNT,), "double", "bigint"),
    Aggregate("sum", (NUMBER,), "bigint", "bigint"),
    Aggregate("mean", (AMOUNT,), "double", "double"),
    *(Aggregate(name, (NUMBER,), "bigint", "bigint") for name in ("min", "max")),
    Aggregate("max", (TEXT,), "string", "string"),
)


@pytest.mark.parametrize("keys", [(), (FEW,), (MANY,), (FEW, TEXT), (MANY, TEXT, FEW)], ids=len)
def test_groups_of_many_rows_have_the_buffers_of_the_cpu(
    gpu: Gpu, keys: tuple[Expression, ...]
) -> None:
    rows, pipeline = rows_for(gpu), Pipeline((Grouped(keys, FUNCTIONS),))
    by = [(f"c{place}", "ascending") for place in range(len(keys) + 1)]
    made, theirs = (
        arrow_table(answer).sort_by(by)
        for answer in (execute(pipeline, rows, gpu=gpu)[0], execute_on_cpu(pipeline, rows)[0])
    )
    assert made.equals(theirs)


def static() -> bytes:
    """A table in which some keys are missing, and some stand twice."""
    keys = pa.array([key for key in range(2_000) for _ in range(key % 3)], pa.int64())
    batch = pa.RecordBatch.from_arrays([keys, pa.array(np.arange(len(keys)))], ["key", "place"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


@pytest.mark.parametrize(
    "step",
    [
        Filter(call("less", "boolean", AMOUNT, literal("double", "12.25"))),
        Expand(((FEW, TEXT), (literal("int", None), literal("string", "x")))),
        Joined((MANY,), static(), (column(0),)),
        Joined((MANY,), static(), (column(0),), "left"),
        Sorted((SortKey(AMOUNT, is_descending=True), SortKey(TEXT), SortKey(FEW))),
        Sorted((SortKey(FEW), SortKey(MANY)), 100),
    ],
    ids=["filter", "expand", "join", "left join", "sort", "top"],
)
def test_many_rows_are_those_of_the_cpu_in_their_order(gpu: Gpu, step: Step) -> None:
    rows, pipeline = rows_for(gpu), Pipeline((step,))
    made, theirs = execute(pipeline, rows, gpu=gpu)[0], execute_on_cpu(pipeline, rows)[0]
    assert arrow_table(made).equals(arrow_table(theirs))


def test_rows_beyond_the_pool_of_a_device_are_split(gpu: Gpu) -> None:
    if not isinstance(gpu, WorkerGpu):
        pytest.skip("skipped, because NumPy has no pool that could be full")
    rows, steps = table(ROWS), (Sorted((SortKey(AMOUNT), SortKey(MANY))),)
    with gpu.used(workers=1) as cuda:
        small = Cuda(cuda.xp, 0, POOL_BYTES)
        with small.current():
            part = in_parts(steps, rows, small, may_repeat_groups=True)
        small.free()
    assert part.parts > 1
    assert arrow_table(part.rows).equals(arrow_table(execute_on_cpu(Pipeline(steps), rows)[0]))
