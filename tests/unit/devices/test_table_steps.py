"""Steps with a static table or with lines of text, as the plug-in describes them in JSON."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pyarrow as pa

from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import Report, execute, pipeline_of, static_table
from penstock.testing import ManualClock
from support.columns import listed, rows


def stream_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def run(step: dict[str, Any], table: Rows) -> tuple[list[tuple[Any, ...]], Report]:
    text = msgspec.json.encode({"steps": [step]}).decode()
    made, report = execute(pipeline_of(text), table, ManualClock())
    return listed(made), report


COLUMN = {"kind": "column", "index": 0}
LEVELS = pa.table({"key": pa.array(["a", "a", None]), "level": pa.array([1, 2, 3])})


def test_a_table_travels_in_the_description_of_its_join() -> None:
    step = {
        "step": "join",
        "keys": [COLUMN],
        "table_keys": [COLUMN],
        "table": base64.b64encode(stream_of(LEVELS)).decode(),
        "how": "left",
    }
    answer, report = run(step, rows([("string", ["b", "a", None])]))
    assert answer == [("b", None, None), ("a", "a", 1), ("a", "a", 2), (None, None, None)]
    assert report.step_rows == (3,)
    assert report.step_bytes[0] > 0


def test_a_table_without_rows_or_batches_has_its_columns() -> None:
    empty = static_table(stream_of(LEVELS.slice(0, 0)))
    assert (empty.count, [column.type for column in empty.columns]) == (
        0, [pa.string(), pa.int64()],
    )  # fmt: skip


def test_fields_of_a_text_come_after_the_columns_that_there_are() -> None:
    step = {"step": "parse", "text": COLUMN, "fields": [["k", "string"], ["n", "int"]]}
    answer, _ = run({**step, "format": "json"}, rows([("string", ['{"n": 5}', None])]))
    assert answer == [('{"n": 5}', None, 5), (None, None, None)]
    separated = {**step, "format": "csv", "separator": ";"}
    answer, _ = run(separated, rows([("string", ["a,b;7"])]))
    assert answer == [("a,b;7", "a,b", 7)]
