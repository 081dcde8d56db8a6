"""Rows from lines of CSV, as Spark's `from_csv` reads them without options.

A field that is not of its type is null, so is one that is missing. Types are texts, truth values,
whole numbers and doubles: how Spark reads times depends on settings of its session. A line of which
it is not known how Spark reads it is refused, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.devices.operators.rows import Rows
from penstock.devices.operators.types import arrow_type
from penstock.errors import BadCall

Field: TypeAlias = tuple[str, str]
"""Name and type of a column."""
WHOLE = r"^[+-]?[0-9]{1,18}$"
FRACTION = r"^[+-]?([0-9]{1,15}\.?[0-9]{0,15}|\.[0-9]{1,15})([eE][+-]?[0-9]{1,2})?$"
SPECIAL = {"NaN": float("nan"), "Inf": float("inf"), "-Inf": float("-inf")}
"""The names that Spark itself has for what is no number."""
JAVA_NAMES = {"NaN": float("nan"), "Infinity": float("inf")}
_JAVA_DECIMAL = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_JAVA_HEX = re.compile(r"0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_JAVA_BLANKS = "".join(map(chr, range(33)))
_UNUSUAL = r'["\r\n\x00]'


def parse_csv(lines: pa.Array, fields: Sequence[Field], separator: str = ",") -> Rows:
    """The fields of lines of CSV, by their places; an empty field is null."""
    for _, kind in fields:
        check_type(kind)
    if pc.any(pc.match_substring_regex(lines, _UNUSUAL)).as_py():
        texts = _split_quoted(lines, len(fields), separator)
    else:
        texts = _split(lines, len(fields), separator)
    columns = [_typed(text, kind) for text, (_, kind) in zip(texts, fields, strict=True)]
    return Rows(tuple(columns), len(lines))


def check_type(kind: str) -> None:
    """Refuse a type of fields whose texts mean different things in different sessions."""
    target = arrow_type(kind)
    tests = (pa.types.is_string, pa.types.is_boolean, pa.types.is_integer, pa.types.is_float64)
    if not any(is_kind(target) for is_kind in tests):
        raise BadCall(f"fields of type {kind} are left to Spark", code="unknown_type")


def unsure(line: str, reason: str) -> BadCall:
    """The refusal of a line that Spark reads in a way of its own."""
    shown = line if len(line) <= 100 else f"{line[:100]}…"
    return BadCall(
        f"a line {reason}, and what Spark reads from it depends on its parser: {shown!r}; set "
        "spark.penstock.devices to panes",
        code="unsure_line",
    )


def _split(lines: pa.Array, count: int, separator: str) -> list[pa.Array]:
    """The first so many fields of lines without quotes; null where a line has fewer."""
    parts = pc.split_pattern(lines, separator)
    starts = np.asarray(parts.offsets)[:-1]
    lengths = np.asarray(pc.fill_null(pc.list_value_length(parts), 0))
    return [
        parts.values.take(pa.array(starts + place, mask=lengths <= place)) for place in range(count)
    ]


def _split_quoted(lines: pa.Array, count: int, separator: str) -> list[pa.Array]:
    """The same where some fields are whole between quotes."""
    mark = re.escape(separator)
    field = re.compile(rf'(?:"((?:[^"\\\r\n\x00]|\\")*)"|([^"\r\n\x00{mark}]*))(?:{mark}|\Z)')
    rows: list[list[str | None]] = []
    for line in lines.to_pylist():
        texts = [] if line is None else _fields_of(line, field, separator)
        rows.append((texts + [None] * count)[:count])
    return [pa.array([row[place] for row in rows], pa.string()) for place in range(count)]


def _fields_of(line: str, field: re.Pattern[str], separator: str) -> list[str | None]:
    texts: list[str | None] = []
    place, is_open = 0, True
    while is_open:
        match = field.match(line, place)
        if match is None:
            raise unsure(line, "of CSV has quotes or ends of lines within a field")
        quoted = match[1]
        texts.append(match[2] if quoted is None else quoted.replace('\\"', '"'))
        place = match.end()
        is_open = match[0].endswith(separator)
    return texts


def _typed(text: pa.Array, kind: str) -> pa.Array:
    """Texts as values of a type; null for what is none."""
    known = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.string()), text)
    target = arrow_type(kind)
    if pa.types.is_string(target):
        return known
    if pa.types.is_boolean(target):
        lower = pc.ascii_lower(known)
        is_flag = pc.is_in(lower, value_set=pa.array(["true", "false"]))
        return pc.if_else(is_flag, pc.equal(lower, "true"), pa.scalar(None, pa.bool_()))
    if pa.types.is_integer(target):
        bounds = np.iinfo(target.to_pandas_dtype())
        numbers = _read(known, WHOLE, pa.int64(), _java_whole)
        is_inside = pc.and_(
            pc.greater_equal(numbers, int(bounds.min)), pc.less_equal(numbers, int(bounds.max))
        )
        return pc.if_else(is_inside, numbers, pa.scalar(None, pa.int64())).cast(target)
    return _read(known, FRACTION, target, _java_double)


def _read(
    text: pa.Array, usual: str, target: pa.DataType, read: Callable[[str], float | int | None]
) -> pa.Array:
    """Texts as numbers: those of the usual form at once, the others one by one as Java reads."""
    is_usual = pc.fill_null(pc.match_substring_regex(text, usual), False)
    # Arrow reads no plus sign.
    plain = pc.ascii_ltrim(pc.if_else(is_usual, text, pa.scalar(None, pa.string())), "+")
    numbers = pc.cast(plain, target)
    is_other = pc.and_(pc.invert(is_usual), pc.is_valid(text))
    if not pc.any(is_other).as_py():
        return numbers
    others = pa.array([read(each) for each in text.filter(is_other).to_pylist()], target)
    return pc.replace_with_mask(numbers, is_other, others)


def _java_whole(text: str) -> int | None:
    """A whole number as Java reads it, in the digits of any script."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if -(2**63) <= number < 2**63 else None


def _java_double(text: str) -> float | None:
    """A double as Java reads it: blanks around it and a letter for its size do not matter."""
    if text in SPECIAL:
        return SPECIAL[text]
    bare = text.strip(_JAVA_BLANKS)
    sign = -1.0 if bare[:1] == "-" else 1.0
    size = bare[1:] if bare[:1] in ("+", "-") else bare
    if size in JAVA_NAMES:
        return sign * JAVA_NAMES[size]
    number = size[:-1] if size[-1:] in ("f", "F", "d", "D") else size
    if _JAVA_HEX.fullmatch(number):
        try:
            return sign * float.fromhex(number)
        except OverflowError:
            return sign * float("inf")
    return sign * float(number) if _JAVA_DECIMAL.fullmatch(number) else None
