"""Floats that CuPy's kernels would take for zero are numbers on a device as on the CPU."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from penstock.devices.gpu.execution import Gpu, execute
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.expressions import Expression
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import Filter, Grouped, Pipeline, Project, Sorted, Step
from penstock.devices.pipeline import execute as execute_on_cpu
from support.columns import call, column, listed, literal

LEAST, LEAST_NORMAL = 2.0**-149, 2.0**-126
SIZES = [0.0, LEAST, 3 * LEAST, LEAST_NORMAL - LEAST, LEAST_NORMAL, 1.5 * LEAST_NORMAL, 0.75, 3e38]
FLOATS = [*SIZES, *(-size for size in SIZES), float("inf"), float("nan")]
# Halfway between floats, and beside that; the largest is above all of them.
DOUBLES = [0.5 * LEAST, 1.5 * LEAST, 2.5 * LEAST, 2.4999 * LEAST, 1e-60, LEAST_NORMAL * 0.99999999]


def pairs() -> Rows:
    """Each float with each, and doubles beside them."""
    left = [number for number in FLOATS for _ in FLOATS]
    right = FLOATS * len(FLOATS)
    doubles = [*DOUBLES, *(-number for number in DOUBLES), 1e39, 1.0]
    wide = (doubles * (len(left) // len(doubles) + 1))[: len(left)]
    floats = [pa.array(np.array(each, np.float32)) for each in (left, right)]
    return Rows((*floats, pa.array(wide, pa.float64())), len(left))


def bits(made: Rows) -> list[list[int | None]]:
    """Columns as the bits of their numbers, which tell zeros apart; all NaN are one."""
    columns = []
    for each in made.columns:
        numbers = np.asarray(each)
        numbers = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers)
        columns.append(numbers.view(f"i{numbers.dtype.itemsize}").tolist())
    return columns


@pytest.mark.parametrize(
    "expression",
    [
        *(call(name, "float", column(0), column(1)) for name in ("add", "subtract", "multiply")),
        *(call(name, "float", column(0)) for name in ("negate", "abs")),
        call("cast", "double", column(0)),
        call("cast", "float", column(2)),
    ],
    ids=lambda made: f"{made.name} to {made.type}",
)
def test_arithmetic_has_every_bit_of_the_cpu(gpu: Gpu, expression: Expression) -> None:
    pipeline = Pipeline((Project((expression,)),))
    made, report = execute(pipeline, pairs(), gpu=gpu)
    assert report.step_devices == ()
    with np.errstate(all="ignore"):
        assert bits(made) == bits(execute_on_cpu(pipeline, pairs())[0])


LEAST_ABOVE = (Aggregate("min", (column(0),), "float", "float"),)
SUM = (Aggregate("sum", (column(0),), "float", "double"),)


@pytest.mark.parametrize(
    "step",
    [
        *(
            Filter(call(name, "boolean", column(0), column(1)))
            for name in ("equal", "less", "greater_equal")
        ),
        Filter(call("in", "boolean", column(0), literal("float", "1.0E-45"))),
        Sorted((SortKey(column(0)), SortKey(column(1), is_descending=True))),
    ],
    ids=["equal", "less", "greater_equal", "in", "sort"],
)
def test_they_are_told_apart_as_on_the_cpu(gpu: Gpu, step: Step) -> None:
    made, _ = execute(Pipeline((step,)), pairs(), gpu=gpu)
    assert listed(made) == listed(execute_on_cpu(Pipeline((step,)), pairs())[0])


@pytest.mark.parametrize("functions", [LEAST_ABOVE, SUM], ids=["min", "sum"])
def test_each_is_a_key_and_counts(gpu: Gpu, functions: tuple[Aggregate, ...]) -> None:
    rows = Rows((pa.array(np.array([LEAST, 0.0, -LEAST, LEAST], np.float32)),), 4)
    step = Grouped((call("normalized", "float", column(0)),), functions)
    made, _ = execute(Pipeline((step,)), rows, gpu=gpu)
    theirs, _ = execute_on_cpu(Pipeline((step,)), rows)
    assert sorted(listed(made)) == sorted(listed(theirs))
    assert made.count == 3
