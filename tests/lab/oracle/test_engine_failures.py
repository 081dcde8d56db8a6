"""What DuckDB fails at is not asked of it, and an error of its own is not an answer."""

from __future__ import annotations

import random
from importlib import import_module

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import Bug
from penstock_lab import oracle
from penstock_lab.queries import named
from support.fake_log import Past

TASKS = "job bigint, event_type int, category int, cpu float, at timestamp, sent_at timestamp"
QUERY = named("cm_category_60_10")
STAGE = QUERY.stages[0].name
FIRST_US, STEP_US = 20_000_000, 500
BATCHES = 4


def tasks(first: int, count: int) -> pa.Table:
    """Tasks one behind the other in time, of four categories."""
    numbers = np.arange(first, first + count)
    at = pa.array(FIRST_US + STEP_US * numbers, pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = (numbers, np.ones(count), numbers % 4, np.full(count, 0.5), at, at)
    names = [column.split()[0] for column in TASKS.split(", ")]
    return pa.table(dict(zip(names, columns, strict=True)))


def past_of(sizes: list[int]) -> Past:
    """A query that wrote nothing of appends of these sizes, in some batches."""
    made = Past()
    made.create("tasks", TASKS)
    made.create(STAGE, QUERY.stages[0].columns)
    schema, commits = made.streams["tasks"]
    first = 0
    for number, count in enumerate(sizes, 1):
        made.lsn += 1
        commits.append((made.lsn, tasks(first, count).cast(schema)))
        first += count
        if number % (len(sizes) // BATCHES) == 0:
            made.mark(STAGE, [], tasks=made.lsn)
    return made


def test_many_small_record_batches_are_checked() -> None:
    sizes: list[int] = []
    chance = random.Random(3)
    while sum(sizes) < 1_000_000:
        sizes.append(chance.randint(1, 2_500 if chance.random() < 0.7 else 40))
    checked = oracle.check(QUERY, past_of(sizes).client(), {STAGE: STAGE})
    assert {difference.kind for difference in checked.differences} == {"expected but not committed"}


def test_a_failure_of_duckdb_is_an_error_of_the_check_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: object) -> None:
        raise duckdb.InternalException("INTERNAL Error: said by DuckDB\n\nStack Trace:")

    monkeypatch.setattr(import_module("penstock_lab.oracle.check"), "compare", failing)
    with pytest.raises(Bug, match=r"cm_category_60_10 were not checked.* said by DuckDB$") as error:
        oracle.check(QUERY, past_of([8] * BATCHES).client(), {STAGE: STAGE})
    assert error.value.code == "oracle_failed"
