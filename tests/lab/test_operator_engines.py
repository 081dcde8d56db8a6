"""Engines that are compared for the operations of pipelines give the same rows."""

from __future__ import annotations

from typing import Any

import pytest

from penstock_lab.measure.engine_inputs import PARSED, input_of, static_table
from penstock_lab.measure.operator_engines import Operation, acero, installed, table_of

OPERATIONS = sorted(acero())


def engines_of(operation: str) -> dict[str, Operation]:
    """The engines that do an operation."""
    return {name: each[operation] for name, each in installed().items() if operation in each}


def listed(answer: Any) -> list[tuple[Any, ...]]:
    """The rows of a table in an order of their own: that of an expansion nobody promises."""
    columns = [column.to_pylist() for column in answer.columns]
    return sorted(tuple(row) for row in zip(*columns, strict=True))


def test_every_operation_of_pipelines_is_compared() -> None:
    others = {"filter", "project", "expand", "pane aggregate", "join", "sort", "top 100"}
    assert {*PARSED, *others} == set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_engine_answers_with_as_many_rows(operation: str) -> None:
    table, other = input_of(operation, 500), static_table()
    counts = {name: run(table, other).num_rows for name, run in engines_of(operation).items()}
    some = {"Acero", "DuckDB"} if operation == "parse JSON" else {"Acero", "NumPy", "DuckDB"}
    assert some <= counts.keys()
    assert len(set(counts.values())) == 1


@pytest.mark.parametrize("operation", [*PARSED, "project", "expand"])
def test_every_engine_computes_the_same_values(operation: str) -> None:
    table, other = input_of(operation, 200), static_table()
    answers = {name: listed(run(table, other)) for name, run in engines_of(operation).items()}
    assert all(answer == answers["Acero"] for answer in answers.values())


def test_the_best_engine_of_a_row_is_bold_and_one_that_does_not_do_it_is_left_out() -> None:
    cells = [("sort", 1000, {"Acero": 1.0, "NumPy": 0.5}), ("parse", 1000, {"Acero": 1.0})]
    lines = table_of(cells).splitlines()
    assert lines[2] == "| sort | 1,000 | 1.00 | **0.50** |"
    assert lines[3] == "| parse | 1,000 | **1.00** | - |"
