"""Rows from lines of JSON, as Spark's `from_json` reads them without options.

A field that is not of its type is null, so is one that is missing, and of a line that is no object
all are. An object that is not well formed is refused: which of its fields Spark keeps depends on
how its parser goes on after an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from penstock.devices.operators.parse import Field, check_type, unsure
from penstock.devices.operators.rows import Rows
from penstock.devices.operators.types import arrow_type

BLANKS = " \t\r\n"
NON_NUMBERS = {
    "NaN": float("nan"),
    **dict.fromkeys(("+INF", "+Infinity", "Infinity"), float("inf")),
    **dict.fromkeys(("-INF", "-Infinity"), float("-inf")),
}
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT_DECODER = msgspec.json.Decoder(str)
_WHOLE = re.compile(r"-?[0-9]+")
_PLAIN_TEXTS = re.compile(r"true|false|-?[1-9][0-9]*|0")
"""Values that are the same text however they are written anew."""


def parse_json_lines(lines: pa.Array, fields: Sequence[Field]) -> Rows:
    """The fields of JSON objects, one a line, by their names."""
    texts = lines.to_pylist()
    objects = [_object(line) for line in texts]
    columns = tuple(_column(name, kind, texts, objects) for name, kind in fields)
    return Rows(columns, len(lines))


def _object(line: str | None) -> dict[str, msgspec.Raw]:
    if line is None or not line.lstrip(BLANKS).startswith("{"):
        return {}
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise unsure(line, f"of JSON is not well formed ({error})") from error


def _column(
    name: str, kind: str, lines: Sequence[str | None], objects: Sequence[dict[str, msgspec.Raw]]
) -> pa.Array:
    check_type(kind)
    target = arrow_type(kind)
    read = next(read for is_kind, read in _READERS if is_kind(target))
    quoted = f'"{name}"'
    values: list[Any] = []
    for line, members in zip(lines, objects, strict=True):
        raw = members.get(name)
        token = "null" if raw is None else bytes(raw).decode()
        value = None if token == "null" else read(token, target, line or "")
        if value is None and token != "null" and (line or "").count(quoted) > 1:
            raise unsure(line or "", f"of JSON may have the field {name} twice")
        values.append(value)
    return pa.array(values, target)


def _text(token: str, target: pa.DataType, line: str) -> str:
    if token.startswith('"'):
        return _TEXT_DECODER.decode(token)
    if _PLAIN_TEXTS.fullmatch(token) is None:
        raise unsure(line, "of JSON has a number or an object where a text is wanted")
    return token


def _flag(token: str, target: pa.DataType, line: str) -> bool | None:
    return {"true": True, "false": False}.get(token)


def _whole(token: str, target: pa.DataType, line: str) -> int | None:
    if _WHOLE.fullmatch(token) is None:
        return None
    bounds = np.iinfo(target.to_pandas_dtype())
    number = int(token)
    return number if bounds.min <= number <= bounds.max else None


def _fraction(token: str, target: pa.DataType, line: str) -> float | None:
    if token.startswith('"'):
        return NON_NUMBERS.get(_TEXT_DECODER.decode(token))
    return float(token) if token[0] in "-0123456789" else None


_READERS: tuple[
    tuple[Callable[[pa.DataType], bool], Callable[[str, pa.DataType, str], Any]], ...
] = (
    (pa.types.is_string, _text),
    (pa.types.is_boolean, _flag),
    (pa.types.is_integer, _whole),
    (pa.types.is_floating, _fraction),
)
