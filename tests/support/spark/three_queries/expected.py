"""The input of the job of three_queries.py, and what of its output anyone can see.

Everything follows from the number of a row. Rows come out of order, but never later than the
watermark allows, so that the windows a batch closes follow from the rows of the batches before it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import duckdb
import pyarrow as pa

from penstock.client import Client
from support.spark.three_queries.job import DELAY_MS, WINDOW_MS

KEYS = 20
STEP_MS = 20
START_MS = 1_800_000_000_000
FAR_MS = 3_600_000

Row = tuple[int, ...]


def readings(first: int, count: int) -> pa.Table:
    return _table(range(first, first + count), 0)


def last_reading(n: int) -> pa.Table:
    """One row so late that its watermark closes every window of the others."""
    return _table(range(n, n + 1), FAR_MS)


def _table(n: range, later_ms: int) -> pa.Table:
    # Out of order by at most 490 ms, which is less than the watermark's delay.
    at = [START_MS + later_ms + i * STEP_MS - (i * 7919 % 50) * 10 for i in n]
    return pa.table(
        {
            "n": pa.array(n, pa.int64()),
            "key": pa.array([i * 31 % KEYS for i in n], pa.int64()),
            "value": pa.array([i % 1000 for i in n], pa.int64()),
            "at": pa.array([ms * 1000 for ms in at], pa.timestamp("us", "UTC")),
        }
    )


def windows_closed_by(seen: pa.Table, all_rows: pa.Table, slide_ms: int = WINDOW_MS) -> list[Row]:
    """End, key, count and sum of the windows that the watermark after `seen` closes."""
    return _query(
        f"""
        with ended as (
            select (epoch_us("at") // {slide_ms * 1000} + 1 + later) * {slide_ms} as ends,
                key, value
            from all_rows, unnest(range({WINDOW_MS // slide_ms})) as windows(later))
        select ends::bigint, key, count(*), sum(value)::bigint from ended
        where ends <= (select max(epoch_us("at")) // 1000 - {DELAY_MS} from seen)
        group by all order by all
        """,
        seen=seen,
        all_rows=all_rows,
    )


@dataclass(frozen=True)
class Seen:
    """What a reader gets: the last batch of which anything is visible, and all visible rows."""

    batch: int
    rows: list[Row]


def seen_totals(client: Client, query: str, stream: str = "totals") -> tuple[Seen, pa.Table]:
    """The log's readers see what markers cover. Also the input that the last marker says was read.

    Of a key the rows come in order, as a key is in one substream; the last one counts.
    """
    markers = client.markers(query)
    if not markers:
        return Seen(-1, []), readings(0, 0)
    last = markers[-1]
    assert [marker.batch for marker in markers] == list(range(int(last.batch) + 1))
    shown = client.read(stream, 0, last.lsn)
    twice = _query("select key, rows from shown group by all having count(*) > 1", shown=shown)
    assert twice == [], "a count that was shown once cannot come again"
    latest = {r["key"]: (r["key"], r["rows"], r["total"], r["last_n"]) for r in shown.to_pylist()}
    prefix = client.read("readings", 0, last.positions["readings"])
    return Seen(int(last.batch), sorted(latest.values())), prefix


def totals_of(prefix: pa.Table) -> list[Row]:
    return _query(
        "select key, count(*), sum(value)::bigint, max(n) from prefix group by key order by key",
        prefix=prefix,
    )


def seen_files(folder: Path) -> Seen:
    """Readers of Spark's file sink take the files that its log names."""
    logs = {
        int(log.name.removesuffix(".compact")): log
        for log in (folder / "_spark_metadata").glob("[0-9]*")
    }
    named: set[Path] = set()
    for log in logs.values():
        entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
        named |= {Path(unquote(urlparse(entry["path"]).path)) for entry in entries}
    return Seen(max(logs, default=-1), _windows_in(named))


def seen_batches(folder: Path, *, whole: bool = False) -> Seen:
    """A batch that foreachBatch has written is visible as soon as a file of it is.

    Spark moves the files of a batch one after the other, and then says that it is whole. Where a
    kill may come in between, only what is `whole` can be compared.
    """
    parts = {
        part
        for part in folder.glob("batch=*/*.parquet")
        if not part.name.startswith((".", "_"))
        and (not whole or (part.parent / "_SUCCESS").exists())
    }
    batches = {int(part.parent.name.removeprefix("batch=")) for part in parts}
    assert batches == set(range(len(batches)))
    return Seen(max(batches, default=-1), _windows_in(parts))


def _windows_in(files: set[Path]) -> list[Row]:
    if not files:
        return []
    return _query(
        "select ends, key, rows, total from read_parquet(getvariable('files')) order by all",
        {"files": sorted(str(file) for file in files)},
    )


def _query(sql: str, variables: dict[str, Any] | None = None, **tables: pa.Table) -> list[Row]:
    with duckdb.connect() as db:
        for name, value in (variables or {}).items():
            db.execute(f"set variable {name} = ?", [value])
        for name, table in tables.items():
            db.register(name, table)
        return [tuple(int(v) for v in row) for row in db.execute(sql).fetchall()]
