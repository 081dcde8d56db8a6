"""Lines of CSV and JSON become rows; what does not fit a type is null and fails nothing."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from penstock.devices.operators.json_lines import parse_json_lines
from penstock.devices.operators.parse import parse_csv
from penstock.errors import BadCall
from support.columns import listed

FIELDS = (("k", "string"), ("i", "int"), ("x", "double"), ("b", "boolean"))


def lines(*texts: str | None) -> pa.Array:
    return pa.array(texts, pa.string())


def test_fields_of_csv_have_their_types() -> None:
    answer = parse_csv(lines("a,1,2.5,true", "b,-7,1e3,FALSE", ",+3,.5,x"), FIELDS)
    assert listed(answer) == [
        ("a", 1, 2.5, True),
        ("b", -7, 1000.0, False),
        (None, 3, 0.5, None),
    ]


def test_fields_that_are_missing_or_wrong_are_null() -> None:
    texts = lines("a", "a,1.5,q,", "a,99999999999,7,true,more", None, "")
    assert listed(parse_csv(texts, FIELDS)) == [
        ("a", None, None, None),
        ("a", None, None, None),
        ("a", None, 7.0, True),
        (None, None, None, None),
        (None, None, None, None),
    ]


def test_quoted_fields_may_hold_the_separator() -> None:
    texts = lines('"a,b",1,2,true', r'"say \"hi\"",2,3,false', "plain,3,4,true")
    assert [row[:2] for row in listed(parse_csv(texts, FIELDS))] == [
        ("a,b", 1),
        ('say "hi"', 2),
        ("plain", 3),
    ]


def test_fields_of_json_lines_are_taken_by_name() -> None:
    texts = lines(
        '{"i": 1, "k": "a", "x": 2, "b": true, "more": []}',
        '{"k": 7, "i": 1.5, "x": "NaN", "b": "yes"}',
        '{"k": null, "i": 2147483648}',
        "not json",
        "[1]",
        None,
    )
    assert listed(parse_json_lines(texts, FIELDS)) == [
        ("a", 1, 2.0, True),
        ("7", None, "NaN", None),
        *[(None, None, None, None)] * 4,
    ]


@pytest.mark.parametrize("parse", [parse_csv, parse_json_lines])
def test_a_type_that_depends_on_the_session_is_left_to_spark(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(BadCall, match="fields of type date are left to Spark"):
        parse(lines('{"d": "2026-01-01"}'), [("d", "date")])


def test_numbers_are_read_as_java_reads_them() -> None:
    texts = lines("9223372036854775807", "9223372036854775808", "+7", "\u0661\u0662", "1.0")
    whole = parse_csv(texts, [("n", "bigint")])
    assert whole.columns[0].to_pylist() == [2**63 - 1, None, 7, 12, None]
    texts = lines("1e400", " 2.5f ", "-Infinity", "-Inf", "0x1.8p1", "Infinity", "1_0", "+Inf")
    doubles = parse_csv(texts, [("x", "double")]).columns[0].to_pylist()
    assert doubles == [math.inf, 2.5, -math.inf, -math.inf, 3.0, math.inf, None, None]


def test_a_backslash_outside_quotes_is_a_letter_like_others() -> None:
    texts = lines(r"a\b,1", r'"a\"b",2')
    assert [row[:2] for row in listed(parse_csv(texts, FIELDS))] == [(r"a\b", 1), ('a"b', 2)]


@pytest.mark.parametrize("line", ['"a"b,1', 'a "b",1', '"a', "a\nb,1", r'"a\b",1'])
def test_a_line_of_csv_that_is_not_plain_is_refused_and_not_guessed(line: str) -> None:
    with pytest.raises(BadCall, match=r"set spark\.penstock\.devices to panes") as refused:
        parse_csv(lines(line), FIELDS)
    assert refused.value.code == "unsure_line"


@pytest.mark.parametrize(
    "line",
    ['{"k": "a"', "{'k': 'a'}", '{"k": "a"} x', '{"x": NaN}', '{"k": 1.50}', '{"i": 1, "i": "x"}'],
)
def test_a_line_of_json_that_is_not_plain_is_refused_and_not_guessed(line: str) -> None:
    with pytest.raises(BadCall, match="depends on its parser"):
        parse_json_lines(lines(line), FIELDS)


def test_a_line_that_is_no_object_is_a_row_of_nulls() -> None:
    texts = lines("", "  ", "5", '"text"', "nonsense", "'single'")
    assert listed(parse_json_lines(texts, FIELDS)) == [(None,) * 4] * 6
