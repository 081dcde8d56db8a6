"""Texts and JSON of a store become typed values, and wrong ones are refused by name."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pytest

from penstock.errors import BadCall
from penstock.lookup.values import WrongValue, column_of, json_reader, text_reader
from penstock.model.ddl import parse_ddl

AT = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


def read(kind: str, text: bytes) -> Any:
    return text_reader(parse_ddl(f"v {kind}").field(0).type)(text)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("string", "grün".encode(), "grün"),
        ("binary", b"\xff\x00", b"\xff\x00"),
        ("int", b" 12 ", 12),
        ("bigint", b"-9223372036854775808", -(2**63)),
        ("double", b"1.5e3", 1500.0),
        ("boolean", b"true", True),
        ("date", b"2026-01-02", datetime.date(2026, 1, 2)),
        ("timestamp", b"2026-01-02T03:04:05Z", AT),
        ("decimal(10,2)", b"12.34", decimal.Decimal("12.34")),
        ("array<int>", b"[1, null, 3]", [1, None, 3]),
        ("struct<a: int, b: string>", b'{"a": 1}', {"a": 1}),
        ("map<string,double>", b'{"x": 1.5}', {"x": 1.5}),
    ],
)
def test_a_text_is_read_as_its_column_s_type(kind: str, text: bytes, value: object) -> None:
    assert read(kind, text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", b"twelve"),
        ("int", b"3.5"),
        ("tinyint", b"300"),
        ("double", b""),
        ("boolean", b"perhaps"),
        ("timestamp", b"yesterday"),
        ("string", b"\xff"),
        ("array<int>", b"[1, "),
        ("array<int>", b'["x"]'),
    ],
)
def test_a_text_of_another_type_is_refused(kind: str, text: bytes) -> None:
    with pytest.raises(WrongValue, match="is no "):
        read(kind, text)


def test_an_object_gives_its_fields_in_order_null_where_it_has_none() -> None:
    reader = json_reader(parse_ddl("name string, price double, tags array<string>"))
    assert reader(b'{"price": 2, "other": 1, "name": "a"}') == ("a", 2.0, None)


@pytest.mark.parametrize("text", [b"[]", b"{", b'{"n": "x"}', b"7"])
def test_json_that_is_no_such_object_is_refused(text: bytes) -> None:
    with pytest.raises(WrongValue, match="is not of the columns' types"):
        json_reader(parse_ddl("n int"))(text)


def test_a_value_that_does_not_fit_its_column_is_named_with_its_key() -> None:
    field = parse_ddl("price double").field(0)
    with pytest.raises(BadCall, match=r"key 'b' in store .*'cheap' is no double for price"):
        column_of(field, ["a", "b"], [(1.0,), ("cheap",)], 0, "store")


def test_a_long_wrong_value_is_cut_short() -> None:
    with pytest.raises(WrongValue) as refused:
        read("int", b"x" * 100_000)
    assert len(str(refused.value)) < 200
