"""The rule that sends a row to a substream, and the vectors the plug-in is held to as well."""

from __future__ import annotations

import base64
import decimal
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock.model import routing
from penstock.model.schema import schema_of

VECTORS = Path(__file__).parents[2] / "vectors" / "routing.json"


def column(ddl: str, value: Any) -> pa.Array:
    """One value of a vector as a column of one row."""
    kind = schema_of(f"c {ddl}").field(0).type
    if value is None:
        return pa.nulls(1, kind)
    if ddl == "binary":
        value = base64.b64decode(value)
    elif ddl in ("float", "double"):
        value = float(value)
    elif ddl.startswith("decimal"):
        value = decimal.Decimal(value)
    elif ddl == "date":
        return pa.array([value], pa.int32()).view(kind)
    elif ddl.startswith("timestamp"):
        return pa.array([value], pa.int64()).view(kind)
    return pa.array([value], kind)


@pytest.mark.parametrize("case", json.loads(VECTORS.read_text("utf-8")), ids=str)
def test_every_vector_gives_its_hash_and_substream(case: dict[str, Any]) -> None:
    columns = [column(ddl, value) for ddl, value in zip(case["types"], case["values"], strict=True)]
    (key_bytes,) = routing.key_bytes(columns)
    assert routing.hash_of(key_bytes) == case["hash"]
    assert routing.place(key_bytes, case["substreams"]) == case["substream"]
    names = [f"c{place}" for place in range(len(columns))]
    batch = pa.RecordBatch.from_arrays(columns, names)
    places = routing.substreams_of(batch, names, case["substreams"])
    assert places.tolist() == [case["substream"]]


def test_zero_and_minus_zero_and_every_nan_are_one_key() -> None:
    zeros = pa.array([0.0, -0.0])
    assert len(set(routing.key_bytes([zeros]))) == 1
    nans = pa.array([0x7FF8000000000001, 0x7FF8000000000000, -1], pa.int64()).view(pa.float64())
    assert len(set(routing.key_bytes([nans]))) == 1


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 5), st.none() | st.sampled_from("abc"))),
    st.integers(1, 7),
)
def test_a_split_keeps_every_row_once_and_in_order(
    rows: list[tuple[int | None, str | None]], substreams: int
) -> None:
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([row[0] for row in rows], pa.int64()),
            pa.array([row[1] for row in rows], pa.string()),
            pa.array(range(len(rows)), pa.int64()),
        ],
        ["k", "s", "at"],
    )
    plain = routing.key_bytes([batch.column("k"), batch.column("s")])
    substream_of_row = [routing.place(key, substreams) for key in plain]
    seen = []
    for substream, part in routing.split(batch, ["k", "s"], substreams):
        places = part.column("at").to_pylist()
        assert places == sorted(places)
        assert {substream_of_row[place] for place in places} == {substream}
        seen += places
    assert sorted(seen) == list(range(len(rows)))


def test_a_nested_column_cannot_be_a_key() -> None:
    schema = schema_of("tags array<string>")
    with pytest.raises(BadCall, match="'tags' of type array<string> cannot be a key"):
        routing.check_key(schema, ["tags"])


def test_a_key_that_is_no_column_is_refused_with_the_columns() -> None:
    with pytest.raises(BadCall, match=r"names 'bid'.*the columns are auction"):
        routing.check_key(schema_of("auction bigint"), ["bid"])
