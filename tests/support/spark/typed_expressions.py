"""Random expressions of SQL over columns of every type that pipelines have, and rows for them."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.devices.operators.types import arrow_type

COLUMNS = {
    "b": "boolean",
    "t": "tinyint",
    "s": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "e": "decimal(12,2)",
    "m": "decimal(18,4)",
    "k": "string",
    "y": "date",
    "at": "timestamp",
    "n": "timestamp_ntz",
}
NAMES = {kind: name for name, kind in COLUMNS.items()}
BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
FRACTIONS = [0.0, -0.0, 1.5, -2.25, 0.125, 1e9, math.nan, math.inf, -math.inf]
LARGE_FRACTIONS = {"float": [3e38, -3e38, 1e-45], "double": [1.7e308, -9.3e18, 5e-324, 2.675]}
DECIMALS = {"decimal(12,2)": (12, 2), "decimal(18,4)": (18, 4)}
TEXTS = ["", "a", "ab", "b", "é", "Zürich"]
DAY_US = 86_400_000_000
COMPARISONS = ("=", "<>", "<=>", "<", "<=", ">", ">=")
NUMBERS = (*BITS, "float", "double", *DECIMALS)


class TypedExpressions:
    """Expressions and rows, always the same for a seed."""

    def __init__(self, seed: int) -> None:
        self._luck = random.Random(seed)

    def rows(self, count: int) -> pa.Table:
        """Rows with a column of each type and their number, `id`; a value in six is null."""
        columns = {
            name: pa.array([self._value(kind) for _ in range(count)], arrow_type(kind))
            for name, kind in COLUMNS.items()
        }
        return pa.table({"id": pa.array(range(count), pa.int32()), **columns})

    def expression(self, depth: int = 3) -> str:
        """An expression of any type that is not one column alone."""
        if self._luck.random() < 0.25:
            return self._condition(depth)
        return self._made(self._luck.choice(NUMBERS), depth)

    def _value(self, kind: str) -> Any:
        luck = self._luck
        if luck.random() < 1 / 6:
            return None
        if kind == "boolean":
            return luck.random() < 0.5
        if kind in BITS:
            edge = 2 ** BITS[kind]
            return luck.choice([0, 1, -1, 2, 7, -edge, edge - 1, luck.randrange(-99, 100)])
        if kind in LARGE_FRACTIONS:
            return luck.choice(FRACTIONS + LARGE_FRACTIONS[kind])
        if kind in DECIMALS:
            digits, scale = DECIMALS[kind]
            edge = 10**digits - 1
            return Decimal(luck.choice([0, 5, -5, edge, -edge, luck.randrange(-999, 999)])).scaleb(
                -scale
            )
        if kind == "string":
            return luck.choice(TEXTS)
        if kind == "date":
            return luck.choice([0, -1, 19_000, -40_000])
        return luck.choice([0, -1, 1_700_000_000_000_001, -DAY_US])

    def _literal(self, kind: str) -> str:
        value = self._value(kind)
        if value is None:
            return f"cast(null as {kind})"
        if kind in ("date", "timestamp", "timestamp_ntz"):
            return NAMES[kind]
        return f"cast('{value}' as {kind})"

    def _leaf(self, kind: str) -> str:
        return NAMES[kind] if self._luck.random() < 0.75 else self._literal(kind)

    def _any(self, kind: str, depth: int) -> str:
        return self._made(kind, depth) if depth else self._leaf(kind)

    def _made(self, kind: str, depth: int) -> str:
        """An expression of a type with a function at its top."""
        luck, below = self._luck, depth - 1
        if kind == "boolean":
            return self._condition(depth)
        first, second = (self._any(kind, luck.randint(0, below)) for _ in range(2))
        shapes = [
            f"if({self._condition(below)}, {first}, {second})",
            f"coalesce({first}, {second})",
            f"case when {self._condition(below)} then {first} end",
        ]
        if kind in NUMBERS:
            sign = luck.choice(["+", "-", "*"])
            # Decimals have more digits after it.
            whole = f"({first} {sign} {second})"
            shapes += [whole, whole, f"abs({first})", f"(- {first})"]
        if kind in BITS:
            shapes += [f"({first} % {second})", self._cast(kind, below)]
        if kind == "double":
            shapes += [f"({first} / {second})", self._cast(kind, below)]
        if kind in DECIMALS:
            shapes.append(self._cast(kind, below))
        if kind == "bigint":
            # Of a constant Spark computes it while it plans, and fails then.
            shapes.append(f"floor({self._made('double', below) if below else 'd'})")
        if kind == "int":
            shapes.append(f"length({self._any('string', 0)})")
        return luck.choice(shapes)

    def _cast(self, kind: str, below: int) -> str:
        other = self._luck.choice([*BITS] if kind in BITS else ["double", "float", *BITS])
        return f"cast({self._any(other, below)} as {kind})"

    def _condition(self, depth: int) -> str:
        if depth <= 0:
            return "b"
        luck, below = self._luck, depth - 1
        kind = luck.choice(tuple(NAMES))
        first, second = (self._any(kind, luck.randint(0, below)) for _ in range(2))
        left, right = (self._condition(below) for _ in range(2))
        text = luck.choice(("startswith", "endswith", "contains"))
        return luck.choice(
            [
                *[f"({first} {luck.choice(COMPARISONS)} {second})"] * 3,
                f"({left} and {right})",
                f"({left} or {right})",
                f"(not {left})",
                f"({first} is null)",
                f"({first} is not null)",
                f"isnan({self._any('double', below)})",
                f"(s in ({self._literal('smallint')}, {self._literal('smallint')}))",
                f"{text}(k, '{luck.choice(TEXTS)}')",
            ]
        )
