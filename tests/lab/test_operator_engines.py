"""Engines that are compared for the operations of pipelines give the same rows."""

from __future__ import annotations

import pytest

from penstock_lab.measure.operator_engines import acero, installed, rows, static_table, table_of


@pytest.mark.parametrize("operation", sorted(acero()))
def test_every_engine_answers_with_as_many_rows(operation: str) -> None:
    table, other = rows(500), static_table()
    counts = {name: each[operation](table, other).num_rows for name, each in installed().items()}
    assert {"Acero", "NumPy", "DuckDB"} <= counts.keys()
    assert len(set(counts.values())) == 1


def test_the_best_engine_of_a_row_is_bold() -> None:
    assert table_of([("sort", 1000, {"Acero": 1.0, "NumPy": 0.5})]).splitlines()[2] == (
        "| sort | 1,000 | 1.00 | **0.50** |"
    )
