"""Engines for the operations of pipelines, one thread each: Acero, NumPy, DuckDB, Polars,
and on a GPU ours and cuDF.

    python -m penstock_lab.measure.operator_engines

prints a table in Markdown, the median time of each operation in ms. All engines get the same Arrow
rows and give Arrow back, as a worker would; an engine that is not installed is left out. On the CPU
it is processor time, which other work on the same cores does not change; on a GPU, wall time.
"""

from __future__ import annotations

import importlib
import os
import resource
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.clock import SYSTEM_CLOCK, Clock, SystemClock
from penstock_lab.measure import gpu_engines
from penstock_lab.percentiles import percentile

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SECONDS_PER_CELL = 0.4
RUNS_MIN, RUNS_MAX = 5, 200
KEYS, PANES, TABLE_ROWS, TOP = 100, 10, 1_000, 100
SLIDE_US = 5_000_000

Operation: TypeAlias = Callable[[pa.Table, pa.Table], Any]


def rows(count: int, seed: int = 1) -> pa.Table:
    """Rows as a stream of the log has them: a time, a text key, numbers."""
    random = np.random.default_rng(seed)
    at = 1_700_000_000_000_000 + random.integers(0, PANES * SLIDE_US, count)
    return pa.table(
        {
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "k": pa.array([f"key-{n}" for n in range(KEYS)]).take(
                pa.array(random.integers(0, KEYS, count))
            ),
            "j": random.integers(0, TABLE_ROWS * 2, count),
            "i": random.integers(0, 1_000, count),
            "x": random.random(count),
        }
    )


def static_table() -> pa.Table:
    return pa.table({"j": np.arange(TABLE_ROWS), "name": [f"name-{n}" for n in range(TABLE_ROWS)]})


def acero() -> dict[str, Operation]:
    def panes(table: pa.Table, _: pa.Table) -> Any:
        pane = pa.array(pane_starts(table))
        keyed = pa.table({"pane": pane, "k": table["k"], "i": table["i"], "x": table["x"]})
        asked = [("i", "sum"), ("x", "sum"), ("x", "count"), ("x", "max")]
        return keyed.group_by(["pane", "k"], use_threads=False).aggregate(asked)

    return {
        "filter": lambda t, _: t.filter(pc.and_(pc.greater(t["x"], 0.5), pc.less(t["i"], 500))),
        "pane aggregate": panes,
        "join": lambda t, other: t.join(other, "j", join_type="inner", use_threads=False),
        "sort": lambda t, _: t.take(pc.sort_indices(t["x"])),
        "top 100": lambda t, _: t.take(
            pc.select_k_unstable(t, TOP, sort_keys=[("x", "descending")])
        ),
    }


def pane_starts(table: pa.Table) -> Any:
    times = np.asarray(table["at"].combine_chunks().cast(pa.int64()))
    return times - times % SLIDE_US


def numpy() -> dict[str, Operation]:
    def column(table: pa.Table, name: str) -> Any:
        return np.asarray(table[name].combine_chunks())

    def kept(table: pa.Table, _: pa.Table) -> Any:
        mask = (column(table, "x") > 0.5) & (column(table, "i") < 500)
        return table.take(pa.array(np.flatnonzero(mask)))

    def panes(table: pa.Table, _: pa.Table) -> Any:
        texts = table["k"].combine_chunks().dictionary_encode()
        pane = pane_starts(table)
        first = pane.min()
        group = (pane - first) // SLIDE_US * len(texts.dictionary) + np.asarray(texts.indices)
        groups, inverse = np.unique(group, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(groups)))
        x = column(table, "x")[order]
        return pa.table(
            {
                "pane": groups // len(texts.dictionary) * SLIDE_US + first,
                "k": texts.dictionary.take(pa.array(groups % len(texts.dictionary))),
                "i": np.add.reduceat(column(table, "i")[order], starts),
                "x": np.add.reduceat(x, starts),
                "n": np.bincount(inverse),
                "max": np.maximum.reduceat(x, starts),
            }
        )

    def joined(table: pa.Table, other: pa.Table) -> Any:
        keys = column(other, "j")
        order = np.argsort(keys)
        place = np.minimum(np.searchsorted(keys[order], column(table, "j")), len(keys) - 1)
        hit = keys[order][place] == column(table, "j")
        matched = table.take(pa.array(np.flatnonzero(hit)))
        return matched.append_column("name", other["name"].take(pa.array(order[place[hit]])))

    def top(table: pa.Table, _: pa.Table) -> Any:
        x = column(table, "x")
        best = np.argpartition(x, -TOP)[-TOP:]
        return table.take(pa.array(best[np.argsort(-x[best])]))

    return {
        "filter": kept,
        "pane aggregate": panes,
        "join": joined,
        "sort": lambda t, _: t.take(pa.array(np.argsort(column(t, "x"), kind="stable"))),
        "top 100": top,
    }


def duck() -> dict[str, Operation]:
    connection = duckdb.connect(config={"threads": 1})

    def asked(sql: str) -> Operation:
        def run(table: pa.Table, other: pa.Table) -> Any:
            connection.register("t", table)
            connection.register("other", other)
            return connection.sql(sql).to_arrow_table()

        return run

    pane = f'epoch_us("at") // {SLIDE_US} * {SLIDE_US}'
    return {
        "filter": asked("select * from t where x > 0.5 and i < 500"),
        "pane aggregate": asked(
            f"select {pane} as pane, k, sum(i), sum(x), count(x), max(x) from t group by 1, 2"
        ),
        "join": asked("select * from t join other using (j)"),
        "sort": asked("select * from t order by x"),
        "top 100": asked(f"select * from t order by x desc limit {TOP}"),
    }


def polars() -> dict[str, Operation]:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    pl: Any = importlib.import_module("polars")

    def panes(table: pa.Table, _: pa.Table) -> Any:
        pane = (pl.col("at").dt.epoch("us") // SLIDE_US * SLIDE_US).alias("pane")
        sums = (pl.col("i").sum(), pl.col("x").sum().alias("s"))
        more = (pl.col("x").count().alias("n"), pl.col("x").max().alias("m"))
        return pl.from_arrow(table).group_by(pane, "k").agg(*sums, *more).to_arrow()

    wanted = (pl.col("x") > 0.5) & (pl.col("i") < 500)
    return {
        "filter": lambda t, _: pl.from_arrow(t).filter(wanted).to_arrow(),
        "pane aggregate": panes,
        "join": lambda t, other: pl.from_arrow(t).join(pl.from_arrow(other), on="j").to_arrow(),
        "sort": lambda t, _: pl.from_arrow(t).sort("x").to_arrow(),
        "top 100": lambda t, _: pl.from_arrow(t).top_k(TOP, by="x").to_arrow(),
    }


ENGINES: dict[str, Callable[[], dict[str, Operation]]] = {
    "Acero": acero,
    "NumPy": numpy,
    "DuckDB": duck,
    "Polars": polars,
    "CuPy, ours": partial(gpu_engines.ours, SLIDE_US, TOP),
    "cuDF": partial(gpu_engines.cudf, SLIDE_US, TOP),
}


ON_GPU = ("CuPy, ours", "cuDF")


class ProcessorClock(SystemClock):
    """A clock that runs while a thread of this process has a core."""

    def monotonic_s(self) -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime


def clock_of(engine: str) -> Clock:
    return SYSTEM_CLOCK if engine in ON_GPU else ProcessorClock()


def installed() -> dict[str, dict[str, Operation]]:
    made = {}
    for name, make in ENGINES.items():
        try:
            made[name] = make()
        except ImportError:
            continue
    return made


def median_ms(run: Callable[[], Any], clock: Clock) -> float:
    """The median over as many runs as fit into the time of a cell; the first run is not counted."""
    run()
    times: list[float] = []
    until_s = clock.monotonic_s() + SECONDS_PER_CELL
    while len(times) < RUNS_MIN or (clock.monotonic_s() < until_s and len(times) < RUNS_MAX):
        began_s = clock.monotonic_s()
        run()
        times.append((clock.monotonic_s() - began_s) * 1_000)
    return percentile(times, 50) or 0.0


def measured(sizes: Sequence[int] = SIZES) -> list[tuple[str, int, dict[str, float]]]:
    """Operation, rows, and ms by engine."""
    pa.set_cpu_count(1)
    engines, other = installed(), static_table()
    cells = []
    for operation in acero():
        for size in sizes:
            table = rows(size).combine_chunks()
            ms = {
                name: median_ms(partial(each[operation], table, other), clock_of(name))
                for name, each in engines.items()
            }
            cells.append((operation, size, ms))
    return cells


def table_of(cells: Sequence[tuple[str, int, dict[str, float]]]) -> str:
    names = list(cells[0][2])
    head = " | ".join(("operation", "rows", *names))
    lines = [f"| {head} |", f"| --- | ---: |{' ---: |' * len(names)}"]
    for operation, size, ms in cells:
        best = min(ms.values())
        texts = [f"**{v:.2f}**" if v == best else f"{v:.2f}" for v in ms.values()]
        lines.append(f"| {operation} | {size:,} | {' | '.join(texts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table_of(measured()))
