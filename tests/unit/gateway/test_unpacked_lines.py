"""JSON lines and CSV are refused by what they come to as rows, before they are made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pyarrow as pa
import pytest

from penstock.errors import BadCall
from penstock.gateway import json_rows
from penstock.gateway.context import LIGHT_ROWS_BYTES
from penstock.gateway.decode import CSV, JSON_LINES, rows_from
from penstock.gateway.drafts import Bounds
from penstock.gateway.routes.rows_in import _light_or_aside
from penstock.model.schema import schema_of
from penstock.settings.server import Settings

KIB = 1 << 10
MIB = 1 << 20
NARROW = schema_of("k bigint, v string")
FIRST = schema_of("k bigint")
WIDE = schema_of(", ".join(["k bigint", *(f"c{n} bigint" for n in range(999))]))
WIDE_STRUCT = "struct<" + ", ".join(f"c{n}: bigint" for n in range(1_000)) + ">"


def refused(body: bytes, content_type: str, schema: pa.Schema, bytes_max: int) -> BadCall:
    """The refusal of a body, of which nothing was made."""
    before = pa.total_allocated_bytes()
    with pytest.raises(BadCall) as caught:
        rows_from(body, content_type, schema, FIRST, bytes_max)
    assert pa.total_allocated_bytes() - before < MIB
    return caught.value


def is_too_large(refusal: BadCall) -> None:
    assert (refusal.code, refusal.http_status) == ("request_too_large", 413)
    assert "once they are unpacked" in refusal.message
    assert "send them in parts" in refusal.message


@pytest.mark.parametrize("size", [8 * KIB, 256 * KIB], ids=["ours", "arrow's"])
def test_lines_of_nothing_count_as_rows_of_every_column(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def decoded(_: object) -> None:
        pytest.fail("the lines are decoded")

    body = b"{}\n" * (size // 3)
    assert rows_from(b"{}\n" * 9, JSON_LINES, WIDE, FIRST, 8 * MIB).num_rows == 9
    monkeypatch.setattr(json_rows, "_lines_of", decoded)
    is_too_large(refused(body, JSON_LINES, WIDE, 8 * MIB))


def test_many_rows_in_one_line_are_not_handed_to_a_reader_that_takes_them() -> None:
    refusal = refused(b"{}" * (64 * KIB), JSON_LINES, WIDE, 8 * MIB)
    assert refusal.code == "bad_rows"
    assert "line 1 is not a row" in refusal.message


def test_what_is_no_row_is_not_counted() -> None:
    line = b'{"k": 1, "c0": 2}\n'
    rows = rows_from(b"\n \n" * (64 * KIB) + line, JSON_LINES, WIDE, FIRST, 8 * MIB)
    assert rows.num_rows == 1
    braces = b'{"k": 1, "v": "' + b"{" * (64 * KIB) + b'"}\n'
    assert rows_from(braces, JSON_LINES, NARROW, NARROW, 64 * KIB).num_rows == 1


def test_objects_in_a_list_or_map_count_as_the_widest_there_is() -> None:
    schema = schema_of(f"v array<{WIDE_STRUCT}>, m map<string, {WIDE_STRUCT}>, t string")
    few = b'{"v": [{}, {"c0": 7}], "m": {"a": {}}}\n'
    rows = rows_from(few, JSON_LINES, schema, schema, MIB)
    assert [each["c0"] for each in rows.column(0)[0].as_py()] == [None, 7]
    many = b'{"v": [' + b",".join([b"{}"] * 4 * KIB) + b"]}\n"
    is_too_large(refused(many, JSON_LINES, schema, 8 * MIB))
    nested = b'{"m": {' + b",".join(b'"%d": {}' % n for n in range(4 * KIB)) + b"}}\n"
    is_too_large(refused(nested, JSON_LINES, schema, 8 * MIB))
    text = b'{"t": "' + b'{\\"' * 8 * KIB + b'"}\n'
    assert rows_from(text, JSON_LINES, schema, schema, MIB).num_rows == 1


def test_values_of_a_list_count_once_they_are_made() -> None:
    schema = schema_of("v array<decimal(38, 0)>")
    body = b'{"v": [' + b",".join([b"1"] * 4 * KIB) + b"]}\n"
    assert rows_from(body, JSON_LINES, schema, schema, 128 * KIB).num_rows == 1
    is_too_large(refused(body * 8, JSON_LINES, schema, 128 * KIB))


def test_rows_that_are_decoded_in_parts_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = schema_of(f"k bigint, d date, v array<{WIDE_STRUCT}>")
    body = b"".join(
        b'{"k": %d, "d": "2024-01-01", "v": [{"c0": %d}]}\n' % (n, n) for n in range(100)
    )
    whole = rows_from(body, JSON_LINES, schema, schema, 8 * MIB)
    monkeypatch.setattr(json_rows, "PART_VALUES", 21)
    by_rows = rows_from(body, JSON_LINES, schema, schema, 8 * MIB)
    monkeypatch.setattr(json_rows, "PART_VALUES", 1 << 20)
    monkeypatch.setattr(json_rows, "PART_BYTES", 100_000)
    by_objects = rows_from(body, JSON_LINES, schema, schema, 8 * MIB)
    assert whole.equals(by_rows)
    assert whole.equals(by_objects)
    assert whole.column(0).to_pylist() == list(range(100))


def test_columns_that_a_csv_leaves_out_count_too() -> None:
    body = b"k\n" + b"1\n" * (8 * KIB)
    assert rows_from(b"k\n1\n", CSV, WIDE, FIRST, 8 * MIB).num_rows == 1
    is_too_large(refused(body, CSV, WIDE, 8 * MIB))
    is_too_large(refused(body.replace(b"\n", b"\r"), CSV, WIDE, 8 * MIB))


def test_lines_inside_a_value_of_a_csv_are_no_rows() -> None:
    body = b'k,v\n1,"' + b"\n" * (64 * KIB) + b'"\n'
    assert rows_from(body, CSV, NARROW, NARROW, 64 * KIB).num_rows == 1


@pytest.mark.parametrize("start", [b"", b"\r\n\n", b"\xef\xbb\xbf\n", b'"\n",'])
def test_a_csv_of_columns_without_end_is_refused(start: bytes) -> None:
    refusal = refused(start + b"a," * (64 * KIB) + b"b\n", CSV, NARROW, 64 * MIB)
    assert refusal.code == "bad_rows"
    assert "first line of the CSV" in refusal.message


def test_a_csv_that_names_a_column_too_many_is_told_which() -> None:
    refusal = refused(b"k,v,extra\n1,a,2\n", CSV, NARROW, MIB)
    assert refusal.code == "rows_do_not_fit"
    assert "extra" in refusal.message


class LightGateway:
    """A gateway for which every body is light; counts what is decoded beside its loop."""

    def __init__(self) -> None:
        self.settings = Settings()
        self.aside: list[int] = []

    def is_light(self, _: int) -> bool:
        return True

    async def decode_aside(self, prepare: Callable[[Bounds], Any], bounds: Bounds) -> Any:
        self.aside.append(bounds.rows_bytes_max)
        return prepare(bounds)


@pytest.mark.parametrize(("rows", "is_aside"), [(5, False), (1_000, True)])
def test_a_light_body_whose_rows_are_not_is_decoded_beside_the_event_loop(
    rows: int, is_aside: bool
) -> None:
    gateway = LightGateway()
    body = b"{}\n" * rows

    def prepare(bounds: Bounds) -> int:
        return int(rows_from(body, JSON_LINES, WIDE, FIRST, bounds.rows_bytes_max).num_rows)

    prepared = _light_or_aside(cast("Any", gateway), len(body), prepare)
    assert asyncio.run(cast("Any", prepared)) == rows
    assert gateway.aside == ([gateway.settings.request_bytes_max] if is_aside else [])
    assert gateway.settings.request_bytes_max > LIGHT_ROWS_BYTES


def test_what_is_wrong_with_a_light_body_is_said_at_once() -> None:
    def prepare(_: Bounds) -> int:
        raise BadCall("no rows", code="bad_rows")

    gateway = LightGateway()
    with pytest.raises(BadCall, match="no rows"):
        asyncio.run(cast("Any", _light_or_aside(cast("Any", gateway), 10, prepare)))
    assert gateway.aside == []
