"""Pipelines of one's own: the columns that they yield, and what their workers log."""

from __future__ import annotations

import logging
import sys
from types import ModuleType

import msgspec
import pyarrow as pa
import pytest

from penstock.devices import worker
from penstock.devices.operators.aggregate import Aggregate
from penstock.devices.operators.order import SortKey
from penstock.devices.operators.rows import Rows
from penstock.devices.pipeline import (
    DEVICE_MODULES,
    DeviceRefused,
    EventTime,
    Expand,
    Filter,
    Grouped,
    Joined,
    Parse,
    Pipeline,
    Project,
    Report,
    Sorted,
    Step,
    execute,
)
from penstock.devices.result_columns import result_columns
from penstock.errors import BadCall
from support.columns import call, column, literal

NAMES = ["k", "at", "d"]
TWICE = call("multiply", "bigint", column(0), literal("bigint", 2))


def table(name: str, kind: pa.DataType) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([(name, kind)])):
        pass
    made: bytes = sink.getvalue().to_pybytes()
    return made


@pytest.mark.parametrize(
    ("steps", "columns"),
    [
        (
            (Filter(column(0)), EventTime(column(1)), Sorted((SortKey(column(0)),), 3)),
            [("k", 0), ("at", 1), ("d", 2)],
        ),
        (
            (Project((column(2), TWICE)), Project((column(1), column(0)))),
            [("c1", "bigint"), ("d", 2)],
        ),
        (
            (Expand(((column(0), column(1)), (column(0), literal("timestamp", None)))),),
            [("k", 0), ("c1", 1)],
        ),
        (
            (Project((column(0),)), Parse(column(0), "csv", (("n", "int"),))),
            [("k", 0), ("n", "int")],
        ),
        (
            (Joined((column(0),), table("level", pa.decimal128(5, 2)), (column(0),)),),
            [("k", 0), ("at", 1), ("d", 2), ("level", "decimal(5,2)")],
        ),
        (
            (
                Grouped(
                    (column(0), TWICE),
                    (
                        Aggregate("count", (), "int", "bigint"),
                        Aggregate("mean", (column(2),), "double", "double"),
                        Aggregate("sum", (column(2),), "decimal(9,2)", "decimal(19,2)"),
                        Aggregate("max", (column(1),), "timestamp", "timestamp"),
                    ),
                ),
            ),
            [
                ("k", 0),
                ("c1", "bigint"),
                ("c2", "bigint"),
                ("c3", "double"),
                ("c4", "bigint"),
                ("c5", "decimal(19,2)"),
                ("c6", "boolean"),
                ("c7", "timestamp"),
            ],
        ),
    ],
)
def test_the_columns_of_a_result_are_told_by_the_steps(
    steps: tuple[Step, ...], columns: list[tuple[str, str | int]]
) -> None:
    assert result_columns(Pipeline(steps), NAMES) == columns


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Project((call("abs", "interval", column(0)),)), "step 1: type interval is left to Spark"),
        (Project((column(3),)), "step 1: there are 3 columns, and none at the place 3"),
        (Project((column(0), column(0))), "several columns are called k"),
        (
            Joined((column(0),), table("K", pa.int64()), (column(0),)),
            "several columns are called k",
        ),
        (
            Joined((column(0),), table("n", pa.list_(pa.int64())), (column(0),)),
            "step 1: type array<bigint> is left",
        ),
        (
            Grouped((), (Aggregate("first", (column(0),), "int", "int"),)),
            "the function first is not known",
        ),
    ],
)
def test_a_result_whose_columns_are_not_told_needs_a_schema(step: Step, words: str) -> None:
    with pytest.raises(BadCall) as refused:
        result_columns(Pipeline((step,)), NAMES)
    assert words in refused.value.message
    assert refused.value.message.endswith("; give `schema`, such as 'k string, n bigint'")


def test_a_worker_logs_once_that_a_gpu_could_not_be_had_and_for_each_cause(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused = iter(["gone", "gone", "full", "gone"])

    def lost(pipeline: Pipeline, rows: Rows) -> tuple[Rows, Report]:
        raise DeviceRefused(next(refused), "the beads have fallen off")  # type: ignore[arg-type]

    abacus = ModuleType("abacus")
    abacus.execute = lost  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "abacus", abacus)
    monkeypatch.setitem(DEVICE_MODULES, "gpu", "abacus")
    monkeypatch.setattr(worker, "_LOGGED", set())
    text = msgspec.json.encode(Pipeline((Project((column(0),)),), "gpu")).decode()
    batches = [pa.record_batch({"k": [1]})] * 2

    def logged() -> list[str]:
        caplog.clear()
        made = list(worker.pipeline_rows(text, iter(batches)))
        assert [each.column(0).to_pylist() for each in made] == [[1], [1]]
        assert all(record.levelno == logging.WARNING for record in caplog.records)
        return caplog.messages

    said = "steps for a GPU run on the CPU: "
    (gone,) = logged()
    assert gone.startswith(f"{said}a GPU was lost while it was used")
    assert gone.endswith("(the beads have fallen off)")
    (full,) = logged()
    assert full.startswith(f"{said}a GPU had no memory left")

    def split(pipeline: Pipeline, rows: Rows) -> tuple[Rows, Report]:
        rows, report = execute(pipeline, rows)
        return rows, msgspec.structs.replace(report, splits=2)

    abacus.execute = split  # type: ignore[attr-defined]
    (halves,) = logged()
    assert halves.startswith("a record batch is split because a GPU is full")
    assert logged() == []
