"""Pipelines run their steps in order and report; a worker answers with the report in front."""

from __future__ import annotations

import pickle
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    EventTimes,
    Pipeline,
    execute,
    execution_on,
    pipeline_of,
)
from penstock.devices.placement import TaskReport
from penstock.devices.worker import answers, chunks, pipeline_function
from penstock.errors import BadCall
from penstock.testing import ManualClock
from support.columns import listed

SECOND = 1_000_000
US = pa.timestamp("us", "UTC")


def reference(index: int) -> dict[str, Any]:
    return {"kind": "column", "index": index}


def called(name: str, kind: str, *arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "call", "name": name, "type": kind, "arguments": list(arguments), **more}


PANES: dict[str, Any] = {
    "device": "cpu",
    "steps": [
        {"step": "event_time", "time": reference(0)},
        {"step": "filter", "condition": called("is_not_null", "boolean", reference(0))},
        {
            "step": "project",
            "columns": [
                called("pane", "timestamp", reference(0), parameters=[5 * SECOND, 0]),
                reference(1),
                reference(2),
            ],
        },
        {
            "step": "aggregate",
            "keys": [reference(0), reference(1)],
            "aggregates": [
                {
                    "function": "sum",
                    "arguments": [reference(2)],
                    "input_type": "int",
                    "type": "bigint",
                    "is_ansi": True,
                }
            ],
        },
    ],
}
TEXT = msgspec.json.encode(PANES).decode()


def batch(*rows: tuple[int | None, str, int]) -> pa.RecordBatch:
    at, k, i = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.record_batch(
        [pa.array(at, pa.int64()).cast(US), pa.array(k, pa.string()), pa.array(i, pa.int32())],
        ["c0", "c1", "c2"],
    )


ROWS = batch((SECOND, "a", 1), (4 * SECOND, "a", 2), (7 * SECOND, "a", 3), (None, "b", 4))


def panes_in(answer: pa.RecordBatch) -> list[tuple[int, str, int]]:
    columns = [answer.column(1).cast(pa.int64()), answer.column(2), answer.column(3)]
    return listed(Rows(tuple(column[1:] for column in columns), answer.num_rows - 1))


def test_a_pipeline_makes_panes_and_notes_the_times_of_all_rows_that_came_by() -> None:
    rows, report = execute(
        pipeline_of(TEXT), Rows(tuple(ROWS.columns), ROWS.num_rows), ManualClock()
    )
    assert listed(Rows((rows.columns[0].cast(pa.int64()), *rows.columns[1:]), rows.count)) == [
        (0, "a", 3),
        (5 * SECOND, "a", 3),
    ]
    times = EventTimes(count=4, min_ms=0, max_ms=7000, mean_ms=3000.0)
    assert (report.rows, report.event_times, report.step_us) == (4, (times,), (0, 0, 0, 0))
    assert report.step_rows == (4, 4, 3, 3)
    assert report.step_bytes[0] == Rows(tuple(ROWS.columns), ROWS.num_rows).size_bytes > 0


def test_a_worker_puts_the_report_in_a_row_of_its_own() -> None:
    (answer,) = pipeline_function(TEXT)(iter([ROWS]))
    text, *nothing = answer.column(0).to_pylist()
    assert nothing == [None, None]
    report = msgspec.json.decode(text, type=TaskReport)
    assert report.rows == 4
    assert [(run.index, run.device, run.rows) for run in report.operations] == [
        (0, "cpu", 4),
        (1, "cpu", 3),
        (2, "cpu", 3),
    ]
    assert [column[0].is_valid for column in answer.columns] == [True, False, False, False]
    assert panes_in(answer) == [(0, "a", 3), (5 * SECOND, "a", 3)]


def test_rows_that_are_all_dropped_still_have_their_report() -> None:
    (answer,) = pipeline_function(TEXT)(iter([batch((None, "a", 1))]))
    assert answer.num_rows == 1
    report = msgspec.json.decode(answer.column(0)[0].as_py(), type=TaskReport)
    assert report.event_times == (EventTimes(1, 0, 0, 0.0),)


def test_a_partition_is_worked_on_in_chunks_of_bounded_size() -> None:
    parts = [batch((n * SECOND, "a", n)) for n in range(5)]
    assert [chunk.count for chunk in chunks(iter([*parts, batch()]), 2)] == [2, 2, 1]
    assert [chunk.count for chunk in chunks(iter([batch()]), 2)] == []
    several = list(answers(pipeline_of(TEXT), iter(parts), 2))
    sums = [pane for answer in several for pane in panes_in(answer)]
    assert sums == [(0, "a", 1), (0, "a", 5), (0, "a", 4)]


def test_a_chunk_is_bounded_by_bytes_as_well_as_by_rows() -> None:
    parts = [batch((n * SECOND, "a", n)) for n in range(5)]
    size = parts[0].nbytes
    assert [chunk.count for chunk in chunks(iter(parts), 100, 2 * size)] == [2, 2, 1]
    assert [chunk.count for chunk in chunks(iter(parts), 100, 2 * size + 1)] == [2, 2, 1]
    assert [chunk.count for chunk in chunks(iter(parts), 100, size - 1)] == [1] * 5
    wide = batch((SECOND, "a" * 10 * size, 1))
    mixed = [parts[0], wide, parts[1], parts[2]]
    assert [chunk.count for chunk in chunks(iter(mixed), 100, 2 * size)] == [1, 1, 2]


def test_the_command_of_a_task_is_unpickled_to_the_function() -> None:
    """The bytes that the plug-in writes: a call of ours, and no type."""
    text = TEXT.encode()
    command = b"".join(
        (
            b"(cpenstock.devices.worker\npipeline_function\nX",
            len(text).to_bytes(4, "little"),
            text,
            b"\x85RNt.",
        )
    )
    function, kind = pickle.loads(command)
    assert kind is None
    assert [answer.num_rows for answer in function(iter([ROWS]))] == [3]


def test_a_device_that_this_build_lacks_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadCall, match="set it to auto, panes or cpu"):
        execution_on("abacus")


def test_a_pipeline_of_another_version_is_refused() -> None:
    with pytest.raises(BadCall, match="install the same version of penstock"):
        pipeline_of('{"steps": [{"step": "teleport"}]}')
    assert pipeline_of('{"steps": []}') == Pipeline(())


def filtered_by(*steps: dict[str, Any]) -> Pipeline:
    """A filter on the third column, and steps after it."""
    third = called(
        "greater", "boolean", reference(2), {"kind": "literal", "type": "int", "value": 2}
    )
    text = msgspec.json.encode({"steps": [{"step": "filter", "condition": third}, *steps]})
    return pipeline_of(text.decode())


def test_a_filter_takes_only_the_columns_that_steps_after_it_read() -> None:
    rows = Rows(tuple(ROWS.columns), ROWS.num_rows)
    noted = {"step": "event_time", "time": reference(0)}
    only_text = {"step": "project", "columns": [reference(1)]}
    made, report = execute(filtered_by(only_text), rows)
    assert listed(made) == [("a",), ("b",)]
    assert (report.step_rows, report.step_bytes[1]) == ((4, 2), made.size_bytes)
    _, report = execute(filtered_by(noted, only_text), rows)
    assert report.step_bytes[1] > made.size_bytes
    kept, report = execute(filtered_by(PANES["steps"][-1]), rows)
    assert (kept.count, report.step_bytes[1] > 2 * (8 + 4)) == (2, True)


@pytest.mark.parametrize(
    "passing", [[], [{"step": "sort", "keys": [{"expression": reference(2)}]}]]
)
def test_all_columns_are_taken_where_all_of_them_go_on(passing: list[dict[str, Any]]) -> None:
    rows = Rows(tuple(ROWS.columns), ROWS.num_rows)
    made, _ = execute(filtered_by(*passing), rows)
    assert [row[1:] for row in listed(made)] == [("a", 3), ("b", 4)]
    assert [each.type for each in made.columns] == [each.type for each in ROWS.columns]


def test_rows_that_all_pass_a_filter_are_not_copied() -> None:
    rows = Rows(tuple(ROWS.columns), ROWS.num_rows)
    assert rows.filtered(pa.array([True] * 4)) is rows
    assert Rows((), 2).filtered(pa.array([True, False])).count == 1
