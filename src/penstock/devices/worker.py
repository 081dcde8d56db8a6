"""The function that Spark's Python workers run for the plug-in: columns in, partial results out.

The plug-in names it in the task's command, with the pipeline as its argument. Every record batch
that goes back begins with a row of its own: the report, in the first column, which is null in all
other rows. The JVM takes that row and that column off.
"""

from __future__ import annotations

import gc
import itertools
import logging
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeAlias

import msgspec
import pyarrow as pa

from penstock.devices.fallbacks import SENTENCES
from penstock.devices.operators.rows import Rows, rows_of
from penstock.devices.pipeline import Pipeline, pipeline_of
from penstock.devices.placement import TaskReport, run_placed

CHUNK_ROWS = 1 << 20
"""Rows that are worked on at once; a partition with more has several partial results of a group."""
CHUNK_BYTES = 64 << 20
"""Bytes that are worked on at once, unless one record batch has more: rows may be long, and a
column of texts has room for two gigabytes."""

Batches: TypeAlias = Iterator[pa.RecordBatch]
_TASKS = itertools.count()
"""The tasks of this process so far."""
SPLIT = "split"
_LOG = logging.getLogger("penstock.devices")
_LOGGED: set[str] = set()
"""The causes that this process has logged."""


def pipeline_function(text: str) -> Callable[[Batches], Batches]:
    """The function of a task, for a pipeline's description; made in the worker, with every task."""
    _spare_imports()
    pipeline = pipeline_of(text)
    is_new = next(_TASKS) == 0
    return lambda batches: answers(pipeline, batches, is_new_worker=is_new)


@lru_cache(maxsize=1)
def _spare_imports() -> None:
    """Spark collects garbage after every task: what was imported need not be looked at again."""
    gc.freeze()


def answers(
    pipeline: Pipeline,
    batches: Batches,
    chunk_rows: int = CHUNK_ROWS,
    *,
    is_new_worker: bool = False,
) -> Batches:
    """The partial results of a partition, chunk by chunk."""
    for chunk in chunks(batches, chunk_rows):
        rows, report = run_placed(pipeline, chunk)
        yield answer(rows, msgspec.structs.replace(report, is_new_worker=is_new_worker))


def chunks(
    batches: Batches, chunk_rows: int = CHUNK_ROWS, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Rows]:
    """Record batches put together until there are so many rows or bytes, or too many bytes with the
    next one; none without a row."""
    waiting: list[pa.RecordBatch] = []
    count = size_bytes = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if waiting and size_bytes + batch.nbytes > chunk_bytes:
            yield rows_of(waiting)
            waiting, count, size_bytes = [], 0, 0
        waiting.append(batch)
        count += batch.num_rows
        size_bytes += batch.nbytes
        if count >= chunk_rows or size_bytes >= chunk_bytes:
            yield rows_of(waiting)
            waiting, count, size_bytes = [], 0, 0
    if waiting:
        yield rows_of(waiting)


def answer(rows: Rows, report: TaskReport) -> pa.RecordBatch:
    """Report and rows as the JVM reads them."""
    text = pa.array([msgspec.json.encode(report).decode()], pa.string())
    columns = [pa.concat_arrays([text, pa.nulls(rows.count, pa.string())])]
    columns += [pa.concat_arrays([pa.nulls(1, each.type), each]) for each in rows.columns]
    return pa.RecordBatch.from_arrays(columns, [f"c{place}" for place in range(len(columns))])


def pipeline_rows(text: str, batches: Batches) -> Batches:
    """The rows that a pipeline makes of each record batch, without a report: a GPU that cannot be
    had, or is full, is logged, once for each cause in a worker."""
    pipeline = pipeline_of(text)
    for batch in batches:
        rows, report = run_placed(pipeline, rows_of([batch]))
        _log_once(report)
        names = [f"c{place}" for place in range(len(rows.columns))]
        yield pa.RecordBatch.from_arrays(list(rows.columns), names)


def _log_once(report: TaskReport) -> None:
    """Log what a report has of a GPU that could not be had, unless this process has done so."""
    for fallback in report.fallbacks:
        if fallback.cause not in _LOGGED:
            _LOGGED.add(fallback.cause)
            sentence = SENTENCES[fallback.cause]
            _LOG.warning("steps for a GPU run on the CPU: %s (%s)", sentence, fallback.text)
    if report.splits and SPLIT not in _LOGGED:
        _LOGGED.add(SPLIT)
        _LOG.warning(
            "a record batch is split because a GPU is full: make smaller ones, or give the GPU "
            "fewer workers"
        )
