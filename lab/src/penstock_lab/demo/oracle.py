"""Was every committed answer right? DuckDB computes each one anew; no Spark and no server here.

A query in update mode must, in each batch, write one row for every key the batch touched, with the
answer over *all* it has read up to the batch's end, and nothing else. That is what is compared:
batch by batch, every row and every column, missing, wrong and unexpected rows alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.types as kinds

DIFFERENCES_KEPT = 20


@dataclass(frozen=True)
class Question:
    """What a query answers, in SQL: `answers` over the table `seen`, grouped by `key`.

    `key` is an expression over the input's columns; the output has it under `key_name`, followed by
    the columns of `answers`.
    """

    name: str
    key: str
    key_name: str
    answers: str

    def over(self, table: str, where: str = "") -> str:
        return (
            f"select {self.key} as {self.key_name}, {self.answers} from {table} {where} "
            f"group by {self.key}"
        )


@dataclass(frozen=True)
class Commit:
    """One committed batch: the rows it read beyond the batch before it, and the rows it wrote."""

    batch: int
    lsn: int
    read: pa.Table
    wrote: pa.Table


@dataclass(frozen=True)
class Difference:
    """One row that should have been there and was not, or the other way round."""

    query: str
    where: str
    what: str
    row: dict[str, object]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.row.items())
        return f"{self.query}, {self.where}: {self.what} {values}"


@dataclass
class Verdict:
    """How many rows were compared and how many differ; the first differences are kept whole."""

    rows_checked: int = 0
    rows_different: int = 0
    first: list[Difference] = field(default_factory=list)

    def add(self, other: Verdict) -> None:
        self.rows_checked += other.rows_checked
        self.rows_different += other.rows_different
        self.first.extend(other.first[: DIFFERENCES_KEPT - len(self.first)])


def check_batches(question: Question, commits: Iterable[Commit]) -> Verdict:
    """Every batch against DuckDB over what had been read up to its end. `commits` in order."""
    verdict = Verdict()
    with duckdb.connect() as base:
        for commit in commits:
            base.register("delta", plain(commit.read))
            base.execute("create table if not exists seen as select * from delta limit 0")
            base.execute("insert into seen select * from delta")
            touched = f"where {question.key} in (select {question.key} from delta)"
            expected = question.over("seen", touched)
            where = f"batch {commit.batch} (marker {commit.lsn})"
            verdict.add(_compare(base, question.name, where, expected, commit.wrote))
    return verdict


def check_view(question: Question, everything: pa.Table, view: pa.Table) -> Verdict:
    """The last row of every key against DuckDB over the whole input."""
    with duckdb.connect() as base:
        base.register("seen", plain(everything))
        return _compare(base, question.name, "final view", question.over("seen"), view)


def check_nothing_else(question: Question, commits: Iterable[Commit], output: pa.Table) -> Verdict:
    """The output stream holds what the markers name, once each, and not a row more."""
    verdict = Verdict()
    with duckdb.connect() as base:
        base.register("output", plain(output))
        marked = [plain(commit.wrote) for commit in commits]
        wrote = pa.concat_tables(marked) if marked else plain(output).slice(0, 0)
        found = _compare(base, question.name, "output stream", "select * from output", wrote)
        # Its rows were counted batch by batch already.
        verdict.rows_different, verdict.first = found.rows_different, found.first
    return verdict


def materialised(question: Question, commits: Iterable[Commit]) -> pa.Table:
    """What a reader holds who lets a later row of a key replace the earlier one."""
    tables = [
        plain(commit.wrote).append_column(
            "_batch", pa.array([commit.batch] * commit.wrote.num_rows, pa.int64())
        )
        for commit in commits
    ]
    if not tables:
        return pa.table({})
    with duckdb.connect() as base:
        base.register("output", pa.concat_tables(tables))
        return base.sql(
            f"select * exclude (_batch) from output qualify "
            f"rank() over (partition by {question.key_name} order by _batch desc) = 1"
        ).to_arrow_table()


def plain(table: pa.Table) -> pa.Table:
    """Timestamps as microseconds: compared as the numbers they are, in no time zone."""
    return pa.table(
        {
            name: column.cast(pa.int64()) if kinds.is_timestamp(column.type) else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _compare(
    base: duckdb.DuckDBPyConnection, query: str, where: str, expected: str, found: pa.Table
) -> Verdict:
    """Both ways, duplicates counted. The larger side is the number of rows different."""
    base.register("found", plain(found))
    base.execute(f"create or replace temp table expected as {expected}")
    names = ", ".join(f'"{name}"' for name in found.column_names)
    sides = {
        "expected but not committed": f"select {names} from expected except all "
        f"select {names} from found",
        "committed but not expected": f"select {names} from found except all "
        f"select {names} from expected",
    }
    verdict = Verdict(rows_checked=found.num_rows)
    for what, sql in sides.items():
        rows: pa.Table = base.sql(f"{sql} order by all").to_arrow_table()
        verdict.rows_different = max(verdict.rows_different, rows.num_rows)
        kept = rows.slice(0, DIFFERENCES_KEPT).to_pylist()
        verdict.first.extend(Difference(query, where, what, row) for row in kept)
    return verdict
