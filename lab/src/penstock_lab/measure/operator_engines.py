"""Engines for the operations of pipelines, one thread each: Acero, NumPy, DuckDB, Polars,
and on a GPU ours and cuDF.

    python -m penstock_lab.measure.operator_engines

prints a table in Markdown, the median time of each operation in ms. All engines get the same Arrow
rows and give Arrow back, as a worker would; an engine that is not installed, or does not do an
operation, is left out. On the CPU
it is processor time, which other work on the same cores does not change; on a GPU, wall time.
"""

from __future__ import annotations

import importlib
import io
import os
import resource
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.json import ReadOptions, read_json

from penstock.clock import SYSTEM_CLOCK, Clock, SystemClock
from penstock_lab.measure import gpu_engines
from penstock_lab.measure.engine_inputs import (
    SLIDE_US,
    TOP,
    WINDOWS,
    input_of,
    joined_lines,
    pane_starts,
    static_table,
    window_starts,
)
from penstock_lab.percentiles import percentile

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SECONDS_PER_CELL = 0.4
RUNS_MIN, RUNS_MAX = 5, 200
READ_OPTIONS = ReadOptions(use_threads=False)

Operation: TypeAlias = Callable[[pa.Table, pa.Table], Any]


def acero() -> dict[str, Operation]:
    def panes(table: pa.Table, _: pa.Table) -> Any:
        pane = pa.array(pane_starts(table))
        keyed = pa.table({"pane": pane, "k": table["k"], "i": table["i"], "x": table["x"]})
        asked = [("i", "sum"), ("x", "sum"), ("x", "count"), ("x", "max")]
        return keyed.group_by(["pane", "k"], use_threads=False).aggregate(asked)

    def split(table: pa.Table, _: pa.Table) -> Any:
        parts = pc.split_pattern(table["line"].combine_chunks(), ",")
        fields = [pc.list_element(parts, place) for place in range(3)]
        return pa.table([fields[0].cast("int64"), fields[1].cast("double"), fields[2]], list("jxk"))

    def decoded(table: pa.Table, _: pa.Table) -> Any:
        return read_json(pa.BufferReader(joined_lines(table)), read_options=READ_OPTIONS)

    def projected(table: pa.Table, _: pa.Table) -> Any:
        made = pc.add(pc.multiply(table["x"], 2.0), table["i"])
        return pa.table([pc.multiply(table["i"], 3), made, table["k"]], list("abk"))

    def expanded(table: pa.Table, _: pa.Table) -> Any:
        copies = table.select(["k", "i"]).take(np.repeat(np.arange(len(table)), WINDOWS))
        return copies.append_column("start", pa.array(window_starts(table)))

    return {
        "parse CSV": split,
        "parse JSON": decoded,
        "project": projected,
        "expand": expanded,
        "filter": lambda t, _: t.filter(pc.and_(pc.greater(t["x"], 0.5), pc.less(t["i"], 500))),
        "pane aggregate": panes,
        "join": lambda t, other: t.join(other, "j", join_type="inner", use_threads=False),
        "sort": lambda t, _: t.take(pc.sort_indices(t["x"])),
        "top 100": lambda t, _: t.take(
            pc.select_k_unstable(t, TOP, sort_keys=[("x", "descending")])
        ),
    }


def column(table: pa.Table, name: str) -> Any:
    return np.asarray(table[name].combine_chunks())


def loaded_by_numpy(table: pa.Table, _: pa.Table) -> Any:
    text = io.StringIO(joined_lines(table).to_pybytes().decode())
    made = np.loadtxt(text, delimiter=",", dtype="i8,f8,U16", ndmin=1)
    return pa.table([made["f0"], made["f1"], made["f2"].astype(object)], list("jxk"))


def projected_by_numpy(table: pa.Table, _: pa.Table) -> Any:
    i = column(table, "i")
    return pa.table([i * 3, column(table, "x") * 2.0 + i, table["k"]], list("abk"))


def expanded_by_numpy(table: pa.Table, _: pa.Table) -> Any:
    i = np.repeat(column(table, "i"), WINDOWS)
    k = table["k"].take(pa.array(np.repeat(np.arange(len(table)), WINDOWS)))
    return pa.table([k, i, window_starts(table)], ["k", "i", "start"])


def numpy() -> dict[str, Operation]:
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
        "parse CSV": loaded_by_numpy,
        "project": projected_by_numpy,
        "expand": expanded_by_numpy,
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
    split = "select string_split(line, ',') as p from t"
    shape = """'{"j": "BIGINT", "x": "DOUBLE", "k": "VARCHAR"}'"""
    return {
        "parse CSV": asked(f"select p[1]::bigint j, p[2]::double x, p[3] k from ({split})"),
        "parse JSON": asked(
            f"select o.j, o.x, o.k from (select json_transform(line, {shape}) as o from t)"
        ),
        "project": asked("select i * 3 a, x * 2 + i b, k from t"),
        "expand": asked(
            f"select k, i, {pane} - n * {SLIDE_US} as start from t, range({WINDOWS}) w(n)"
        ),
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

    def split(table: pa.Table, _: pa.Table) -> Any:
        parts = pl.from_arrow(table).select(pl.col("line").str.split_exact(",", 2)).unnest("line")
        types = {"field_0": pl.Int64, "field_1": pl.Float64}
        return parts.with_columns(
            pl.col(name).cast(kind) for name, kind in types.items()
        ).to_arrow()

    def decoded(table: pa.Table, _: pa.Table) -> Any:
        shape = pl.Struct({"j": pl.Int64, "x": pl.Float64, "k": pl.String})
        objects = pl.from_arrow(table).select(pl.col("line").str.json_decode(shape))
        return objects.unnest("line").to_arrow()

    def projected(table: pa.Table, _: pa.Table) -> Any:
        made = (pl.col("i") * 3, (pl.col("x") * 2.0 + pl.col("i")).alias("b"), "k")
        return pl.from_arrow(table).select(*made).to_arrow()

    def expanded(table: pa.Table, _: pa.Table) -> Any:
        pane = pl.col("at").dt.epoch("us") // SLIDE_US * SLIDE_US
        steps = pl.DataFrame({"n": np.arange(WINDOWS) * SLIDE_US})
        copies = pl.from_arrow(table).select("k", "i", pane.alias("p")).join(steps, how="cross")
        return copies.select("k", "i", pl.col("p") - pl.col("n")).to_arrow()

    wanted = (pl.col("x") > 0.5) & (pl.col("i") < 500)
    return {
        "parse CSV": split,
        "parse JSON": decoded,
        "project": projected,
        "expand": expanded,
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
            table = input_of(operation, size)
            ms = {
                name: median_ms(partial(each[operation], table, other), clock_of(name))
                for name, each in engines.items()
                if operation in each
            }
            cells.append((operation, size, ms))
    return cells


def table_of(cells: Sequence[tuple[str, int, dict[str, float]]]) -> str:
    names = list(dict.fromkeys(name for *_, ms in cells for name in ms))
    head = " | ".join(("operation", "rows", *names))
    lines = [f"| {head} |", f"| --- | ---: |{' ---: |' * len(names)}"]
    for operation, size, ms in cells:
        best = min(ms.values())
        shown = {name: f"**{v:.2f}**" if v == best else f"{v:.2f}" for name, v in ms.items()}
        texts = [shown.get(name, "-") for name in names]
        lines.append(f"| {operation} | {size:,} | {' | '.join(texts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table_of(measured()))
