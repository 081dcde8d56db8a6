"""A body that is small and unpacks to much is refused before it is unpacked; depth is bounded."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import BadCall
from penstock.gateway.arrow_bounds import compressed_bytes, unpacked_bytes
from penstock.gateway.decode import ARROW, JSON_LINES, rows_from
from penstock.gateway.parse import json_of
from penstock.model.requests import AdmissionBody, MarkerBody, StreamBody
from penstock.model.schema import canonical, from_base64, schema_of, to_base64

MIB = 1 << 20
TEXTS = schema_of("v string")
NUMBERS = schema_of("k bigint, v string")


def ipc(column: pa.Array, name: str = "v", **options: Any) -> bytes:
    batch = pa.RecordBatch.from_arrays([column], [name])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def views_of_one_text(count: int, size: int) -> pa.Array:
    """Many long values of which there is only one in memory."""
    views = struct.pack("<i4sii", size, b"xxxx", 0, 0) * count
    buffers = [None, pa.py_buffer(views), pa.py_buffer(b"x" * size)]
    return pa.Array.from_buffers(pa.string_view(), count, buffers)


BOMBS = {
    "zstd": ipc(pa.array(["x" * 1000] * 100_000), compression="zstd"),
    "lz4": ipc(pa.array(["x" * 1000] * 100_000), compression="lz4"),
    "dictionary": ipc(pa.array(["x" * 1000] * 100_000).dictionary_encode()),
    "compressed dictionary": ipc(
        pa.array(["x" * MIB] * 100).dictionary_encode(), compression="zstd"
    ),
    "views": ipc(views_of_one_text(100, MIB)),
    "nulls": ipc(pa.nulls(50_000_000)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_rows_that_unpack_to_much_are_refused_before_they_are(name: str) -> None:
    body = BOMBS[name]
    assert len(body) < 2 * MIB
    allocated = pa.total_allocated_bytes()
    with pytest.raises(BadCall) as refused:
        rows_from(body, ARROW, TEXTS, TEXTS, 32 * MIB)
    assert (refused.value.code, refused.value.http_status) == ("request_too_large", 413)
    assert "once they are unpacked" in refused.value.message
    assert pa.total_allocated_bytes() - allocated < 4 * MIB


@pytest.mark.parametrize("name", [name for name in BOMBS if name != "nulls"])
def test_the_same_rows_are_taken_where_there_is_room(name: str) -> None:
    rows = rows_from(BOMBS[name], ARROW, TEXTS, TEXTS, 256 * MIB)
    assert rows.schema.equals(TEXTS)
    assert rows.num_rows in (100, 100_000)
    assert unpacked_bytes(rows.column(0)) >= 100 * 1000 * 1000


def test_columns_that_are_left_out_count_too() -> None:
    wide = schema_of(", ".join(["flag boolean", *(f"c{n} bigint" for n in range(1000))]))
    body = ipc(pa.array([True] * 100_000), "flag")
    with pytest.raises(BadCall, match="once they are unpacked"):
        rows_from(body, ARROW, wide, schema_of("flag boolean"), 64 * MIB)


def test_lists_that_are_views_are_refused() -> None:
    """A cast of theirs makes an array whose buffers are too short."""
    view = pa.ListViewArray.from_arrays(
        pa.array([0, 0], pa.int32()), pa.array([3, 3], pa.int32()), pa.array([1, 2, 3])
    )
    schema = schema_of("v array<bigint>")
    with pytest.raises(BadCall) as refused:
        rows_from(ipc(view), ARROW, schema, schema, MIB)
    assert refused.value.code == "rows_do_not_fit"


def test_what_is_not_compressed_declares_nothing() -> None:
    assert compressed_bytes(pa.py_buffer(ipc(pa.array(["x"] * 1000)))) == 0


@pytest.mark.parametrize("text", ['{"v":' + "[" * 1_000_000, '{"v":' * 300_000])
def test_lines_nested_without_end_are_refused(text: str) -> None:
    with pytest.raises(BadCall) as refused:
        rows_from(text.encode(), JSON_LINES, NUMBERS, NUMBERS, 64 * MIB)
    assert refused.value.code == "bad_rows"


@pytest.mark.parametrize("kind", [StreamBody, AdmissionBody, MarkerBody])
def test_requests_nested_without_end_are_refused(kind: type[Any]) -> None:
    field = kind.__struct_fields__[0]
    for text in ("[" * 1_000_000, f'{{"{field}":' * 100_000, f'{{"{field}":' + "[" * 1_000_000):
        with pytest.raises(BadCall) as refused:
            json_of(text.encode(), kind)
        assert refused.value.code == "bad_request"


def nested(depth: int) -> pa.DataType:
    kind = pa.int64()
    for _ in range(depth):
        kind = pa.list_(kind)
    return kind


def test_types_are_nested_so_deep_and_no_deeper() -> None:
    assert canonical(pa.schema([("k", nested(31))])) is not None
    deep: list[Callable[[], pa.Schema]] = [
        lambda: schema_of("k " + "array<" * 32 + "int" + ">" * 32),
        lambda: schema_of("k " + "array<" * 100_000),
        lambda: schema_of("k " + "struct<a:" * 100_000),
        lambda: from_base64(to_base64(pa.schema([("k", nested(40))]))),
    ]
    for given in deep:
        with pytest.raises(BadCall) as refused:
            given()
        assert refused.value.code == "bad_schema"
        assert len(json.dumps(refused.value.message)) < 5_000


def test_a_long_schema_is_read_in_time_that_grows_with_it() -> None:
    """Half a minute if every token cost as much as the text that follows it."""
    text = ", ".join(f"`{'x' * 200}{n}` bigint" for n in range(4_000))
    assert len(schema_of(text)) == 4_000
