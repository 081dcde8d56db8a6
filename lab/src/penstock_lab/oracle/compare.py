"""Comparison of what a stage has written with what it should have, in one pass over all batches.

Both are tables of rows with the batch that wrote them. Rows that all count are compared batch by
batch as multisets. Rows that replace each other are compared as views: what a reader holds after a
batch is the last row of each key, and two views are the same after every batch if they change in
the same batches to the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from penstock_lab.queries import Stage

DIFFERENCES_KEPT = 20


@dataclass(frozen=True)
class Difference:
    """One row that should have been there and was not, or the other way round."""

    stage: str
    batch: int | None
    """None for a row that lies past the last batch."""
    lsn: int | None
    kind: str
    row: dict[str, object]

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in self.row.items())
        where = "past its last batch"
        if self.batch is not None:
            where = f"batch {self.batch} (marker {self.lsn})"
        return f"{self.stage}, {where}: {self.kind} {values}"


@dataclass(frozen=True)
class Compared:
    """Rows that differ, the larger of both sides, and the first of them."""

    different: int
    first: tuple[Difference, ...]


def compare(base: duckdb.DuckDBPyConnection, stage: Stage, expected: str) -> Compared:
    """`expected` is SQL for the rows the stage should have written, with `_batch`.

    The database has `written` and `batches`, see `committed`.
    """
    base.execute(f"create or replace temp table expected as {expected}")
    names = _columns(base)
    if stage.key:
        sides = {side: _changes(side, names, stage.key) for side in ("expected", "written")}
    else:
        sides = {side: f"select _batch, {names} from {side}" for side in ("expected", "written")}
    missing = f"{sides['expected']} except all {sides['written']}"
    excess = f"{sides['written']} except all {sides['expected']}"
    counts: list[int] = []
    first: list[Difference] = []
    for kind, sql in (
        ("expected but not committed", missing),
        ("committed but not expected", excess),
        *_rules(stage, names),
    ):
        # In the order of all columns, the batch first, so that a report is the same each time.
        rows: pa.Table = base.sql(f"{sql} order by all").to_arrow_table()
        counts.append(rows.num_rows)
        first.extend(_differences(base, stage.name, kind, rows))
    first.sort(key=lambda difference: difference.batch or 0)
    return Compared(max(counts), tuple(first[:DIFFERENCES_KEPT]))


def compare_view(
    base: duckdb.DuckDBPyConnection, stage: Stage, batch: int, truth: pa.Table
) -> Compared:
    """The view after one batch, against the columns of `truth`."""
    base.register("truth", truth)
    names = ", ".join(f'"{name}"' for name in truth.column_names)
    keys = ", ".join(stage.key)
    view = (
        f"select {names} from written where _batch <= {batch} "
        f"qualify row_number() over (partition by {keys} order by _row desc) = 1"
    )
    counts: list[int] = []
    first: list[Difference] = []
    for kind, sql in (
        (
            "true of the input but not in the view:",
            f"select {names} from truth except all ({view})",
        ),
        (
            "in the view but not true of the input:",
            f"({view}) except all select {names} from truth",
        ),
    ):
        rows = base.sql(f"select *, {batch} as _batch from ({sql}) order by all").to_arrow_table()
        counts.append(rows.num_rows)
        first.extend(_differences(base, stage.name, kind, rows))
    return Compared(max(counts), tuple(first[:DIFFERENCES_KEPT]))


def _columns(base: duckdb.DuckDBPyConnection) -> str:
    described = base.sql("select * from written limit 0").columns
    return ", ".join(f'"{name}"' for name in described if name not in ("_batch", "_row"))


def _changes(side: str, names: str, key: tuple[str, ...]) -> str:
    """The rows that are not what their key's row before them was."""
    keys = ", ".join(key)
    return (
        f"select _batch, {names} from (select _batch, {names}, "
        f"lag(struct_pack({_packed(names)})) over "
        f"(partition by {keys} order by _batch) as before from {side}) "
        f"where before is distinct from struct_pack({_packed(names)})"
    )


def _packed(names: str) -> str:
    return ", ".join(f"{name} := {name}" for name in names.split(", "))


def _rules(stage: Stage, names: str) -> Iterator[tuple[str, str]]:
    """What must hold of the rows written, whatever was expected."""
    if stage.key:
        # Which of two rows of a batch is the later is not defined across substreams.
        keys = ", ".join(stage.key)
        place = f"row_number() over (partition by {keys}, _batch order by _row)"
        twice = f"select _batch, {names} from written qualify {place} > 1"
        yield "committed twice in one batch", twice
    if stage.ranked:
        within = ", ".join(stage.ranked)
        place = f"row_number() over (partition by {within}, _batch order by _row)"
        misplaced = f"select _batch, {names} from written qualify {place} <> rank"
        yield "committed out of order", misplaced


def _differences(
    base: duckdb.DuckDBPyConnection, stage: str, kind: str, rows: pa.Table
) -> Iterator[Difference]:
    lsns: dict[int, int] = dict(base.execute("select batch, lsn from batches").fetchall())
    for row in rows.slice(0, DIFFERENCES_KEPT).to_pylist():
        batch = int(row.pop("_batch"))
        yield Difference(stage, batch, lsns[batch], kind, row)
