"""The table of decisions: one row for every operation there is."""

from __future__ import annotations

from typing import get_args

from penstock.log.decide import DECISIONS
from penstock.log.operations import Operation


def test_every_operation_has_exactly_one_row_in_the_table_of_decisions() -> None:
    assert set(DECISIONS) == set(get_args(Operation))
    assert len(DECISIONS) == len(get_args(Operation)), "and none is named twice in the union"
