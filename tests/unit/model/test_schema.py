"""The canonical schema: what becomes what, what is refused, and how rows are fitted."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.errors import BadCall
from penstock.model.schema import (
    canonical,
    fit,
    from_base64,
    same_shape,
    schema_of,
    to_base64,
    to_ddl,
)

WIDE = (
    "a boolean, b tinyint, c smallint, d int, e bigint, f float, g double, h decimal(10,2), "
    "i string, j binary, k date, l timestamp, m timestamp_ntz, n array<string>, "
    "o struct<x:int,`y z`:array<bigint>>, p map<string,struct<q:double>>, `odd name` string"
)


def test_ddl_goes_to_arrow_and_back() -> None:
    assert to_ddl(schema_of(WIDE)) == WIDE
    assert schema_of(to_ddl(schema_of(WIDE))).equals(schema_of(WIDE))


def test_other_words_for_the_same_types_are_read() -> None:
    text = "A BYTE, b short, c Integer, d long, e varchar(20) NOT NULL, f dec, g struct<h int>"
    assert to_ddl(schema_of(text)) == (
        "A tinyint, b smallint, c int, d bigint, e string, f decimal(10,0), g struct<h:int>"
    )
    assert to_ddl(schema_of("a int comment 'it''s', b string")) == "a int, b string"


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "ends where a column name"),
        ("a", "ends where a type"),
        ("a bigint,", "ends where a column name"),
        ("a bigint b int", "'b' comes after the last column"),
        ("a wibble", "'wibble' is not a type"),
        ("a array<int", "ends where '>'"),
        ("a decimal(40,2)", "outside decimal"),
        ("a int; drop", "cannot be read"),
        ("a int not", "'null' should follow"),
        ("a int, a string", "names 'a' more than once"),
        ("a varchar(x)", "a number should be"),
    ],
)
def test_a_text_that_is_no_schema_is_refused_saying_where(text: str, fact: str) -> None:
    with pytest.raises(BadCall, match=fact) as caught:
        schema_of(text)
    assert caught.value.code == "bad_schema"


def test_types_are_brought_to_one_form() -> None:
    loose = pa.schema(
        [
            pa.field("s", pa.large_string(), nullable=False, metadata={"a": "b"}),
            pa.field("d", pa.dictionary(pa.int8(), pa.string())),
            pa.field("t", pa.timestamp("ns", "Europe/Berlin")),
            pa.field("n", pa.timestamp("s")),
            pa.field("l", pa.large_list(pa.field("item", pa.large_binary(), nullable=False))),
            pa.field("e", pa.date64()),
            pa.field("f", pa.binary(4)),
        ],
        metadata={"pandas": "{}"},
    )
    made = canonical(loose)
    assert to_ddl(made) == (
        "s string, d string, t timestamp, n timestamp_ntz, l array<binary>, e date, f binary"
    )
    assert made.metadata is None
    assert all(field.nullable and field.metadata is None for field in made)
    assert canonical(made).equals(made)


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        (pa.uint8(), "use smallint"),
        (pa.uint64(), r"use decimal\(20,0\)"),
        (pa.duration("us"), "use a bigint of microseconds"),
        (pa.time64("us"), "use a bigint of microseconds"),
        (pa.decimal256(50, 2), r"use decimal\(38, scale\)"),
        (pa.null(), "a column with a type"),
        (pa.list_(pa.uint32()), "'c.element' has the type uint32.*use bigint"),
    ],
)
def test_a_type_spark_lacks_is_refused_with_one_to_use(kind: pa.DataType, instead: str) -> None:
    with pytest.raises(BadCall, match=instead):
        canonical(pa.schema([("c", kind)]))


def test_a_schema_travels_as_base64() -> None:
    assert from_base64(to_base64(schema_of(WIDE))).equals(schema_of(WIDE))


@pytest.mark.parametrize("text", ["%%%", "aGVsbG8=", ""])
def test_base64_that_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(BadCall, match="not the base64 of an Arrow IPC schema"):
        from_base64(text)


def test_shapes_compare_by_what_they_become() -> None:
    stream = schema_of("a string, b array<int>")
    assert same_shape(pa.schema([("a", pa.large_string()), ("b", pa.list_(pa.int32()))]), stream)
    assert not same_shape(pa.schema([("b", pa.list_(pa.int32())), ("a", pa.string())]), stream)
    assert not same_shape(pa.schema([("a", pa.uint8())]), stream)


def test_rows_are_fitted_by_name_with_safe_casts() -> None:
    rows = pa.table(
        {
            "at": pa.array([0], pa.timestamp("ns", "Asia/Tokyo")),
            "tag": pa.array(["x"]).dictionary_encode(),
            "k": pa.array([7], pa.int8()),
        }
    )
    schema = schema_of("k bigint, at timestamp, tag string")
    fitted = fit(rows, schema)
    assert fitted.schema.equals(schema)
    assert fitted.column("k").to_pylist() == [7]
    assert fitted.column("tag").to_pylist() == ["x"]


@pytest.mark.parametrize(
    ("rows", "fact"),
    [
        ({"k": [1]}, "lack 'v'"),
        ({"k": [1], "v": ["x"], "w": [1]}, "have an unknown 'w'"),
        ({"k": [1], "u": ["x"]}, "lack 'v' and have an unknown 'u'"),
        (
            {"k": [1 << 40], "v": ["x"]},
            "column 'k' of type int64 does not fit int: .*1099511627776",
        ),
        ({"k": ["x"], "v": ["x"]}, "column 'k' of type string does not fit int"),
        ({"k": [1.5], "v": ["x"]}, "column 'k' of type double does not fit int"),
    ],
)
def test_rows_that_do_not_fit_are_refused_naming_the_column(
    rows: dict[str, list[object]], fact: str
) -> None:
    with pytest.raises(BadCall, match=fact) as caught:
        fit(pa.table(rows), schema_of("k int, v string"))
    assert caught.value.code == "rows_do_not_fit"
