"""Names of Spark's types, and the Arrow types that its columns have."""

from __future__ import annotations

import re

import pyarrow as pa

from penstock.errors import BadCall

ZONE = "UTC"
"""The label that times carry; their values are microseconds since 1970 whatever it says."""
SIMPLE: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", ZONE),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def arrow_type(name: str) -> pa.DataType:
    """The Arrow type for the name of one of Spark's; raises BadCall for others."""
    if name in SIMPLE:
        return SIMPLE[name]
    decimal = _DECIMAL.fullmatch(name)
    if decimal is None:
        raise BadCall(f"type {name} is left to Spark", code="unknown_type")
    return pa.decimal128(int(decimal[1]), int(decimal[2]))
