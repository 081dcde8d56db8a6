"""Pipelines: the steps from a source's columns to what Spark goes on with, and their execution.

The plug-in translates them from the physical plan of a query and hands them over as JSON. Steps on
one device run one after the other, each over the rows of the step before. Between them are columns
in memory: a projection passes on those that it does not compute, and a filter takes only those that
a later step reads, and none where it keeps all rows. `placement` runs a pipeline whose steps are on
several devices.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal as Choice
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.devices.operators.aggregate import Aggregate, aggregate
from penstock.devices.operators.arithmetic import numbers_of
from penstock.devices.operators.evaluate import column, rows_where
from penstock.devices.operators.expand import expand
from penstock.devices.operators.expressions import Expression, columns_read
from penstock.devices.operators.join import join
from penstock.devices.operators.json_lines import parse_json_lines
from penstock.devices.operators.order import SortKey, sort, top
from penstock.devices.operators.parse import Field, parse_csv
from penstock.devices.operators.rows import Rows
from penstock.errors import BadCall
from penstock.model.device_plans import FallbackCause

CPU = "cpu"
DEVICE_MODULES = {"gpu": "penstock.devices.gpu"}
"""Where the steps of other devices are: a function `execute` like the one below."""
US_PER_MS = 1_000
PIPELINES_KEPT = 64
TABLES_KEPT = 8


class Filter(msgspec.Struct, frozen=True, tag_field="step", tag="filter"):
    """Keep the rows of which a condition is true."""

    condition: Expression


class Project(msgspec.Struct, frozen=True, tag_field="step", tag="project"):
    """Make other columns of a row."""

    columns: tuple[Expression, ...]


class Expand(msgspec.Struct, frozen=True, tag_field="step", tag="expand"):
    """Make a row per projection of every row."""

    projections: tuple[tuple[Expression, ...], ...]


class Parse(msgspec.Struct, frozen=True, tag_field="step", tag="parse"):
    """Read the fields of lines of text, which become columns after those that there are."""

    text: Expression
    format: Choice["csv", "json"]
    fields: tuple[Field, ...]
    separator: str = ","


class Joined(msgspec.Struct, frozen=True, tag_field="step", tag="join"):
    """Join rows with a table that does not change, whose columns come after theirs."""

    keys: tuple[Expression, ...]
    table: bytes
    """A stream of Arrow; in JSON its text in base 64."""
    table_keys: tuple[Expression, ...]
    how: Choice["inner", "left"] = "inner"


class EventTime(msgspec.Struct, frozen=True, tag_field="step", tag="event_time"):
    """Note the event times of the rows that come by, as Spark does for the watermark."""

    time: Expression


class Grouped(msgspec.Struct, frozen=True, tag_field="step", tag="aggregate"):
    """Aggregate rows by keys into Spark's buffers."""

    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]


class Sorted(msgspec.Struct, frozen=True, tag_field="step", tag="sort"):
    """Sort the rows; with `count` only the first so many are kept."""

    keys: tuple[SortKey, ...]
    count: int | None = None


Step: TypeAlias = Filter | Project | Expand | Parse | Joined | EventTime | Grouped | Sorted


class Pipeline(msgspec.Struct, frozen=True):
    """Steps over the columns that are sent, and the device that runs them.

    `devices` has one for each step where they differ. `must_not_fall_back`: where a device cannot
    be had, the task fails instead of running on the CPU. `gpu_workers` is how many workers may be
    at one GPU at once. `is_followed`: later steps on another device take the result, so that it
    must have every group once.
    """

    steps: tuple[Step, ...]
    device: str = CPU
    devices: tuple[str, ...] = ()
    must_not_fall_back: bool = False
    gpu_workers: int = 1
    is_followed: bool = False


class EventTimes(msgspec.Struct, frozen=True):
    """Event times of rows in milliseconds; a row without one counts as 1970, as in Spark."""

    count: int
    min_ms: int
    max_ms: int
    mean_ms: float


class Fallback(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of a task that ran on the CPU though a GPU was planned; `text` names the error."""

    cause: FallbackCause
    text: str = ""


class DeviceRefused(Exception):
    """A device that a task cannot have now, by cause; `placement` falls back to the CPU."""

    def __init__(self, cause: FallbackCause, text: str) -> None:
        super().__init__(text)
        self.cause = cause
        self.text = text


class Report(msgspec.Struct, frozen=True, omit_defaults=True):
    """The report of a pipeline's run, which goes beside its rows."""

    rows: int
    event_times: tuple[EventTimes | None, ...]
    """Of each step that notes them, in order; None if no row came by."""
    step_us: tuple[int, ...]
    """How long each step took."""
    step_bytes: tuple[int, ...] = ()
    """The bytes that went into each step."""
    step_rows: tuple[int, ...] = ()
    """The rows that went into each step."""
    to_gpu_us: int = 0
    to_gpu_bytes: int = 0
    to_cpu_us: int = 0
    to_cpu_bytes: int = 0
    splits: int = 0
    """Parts that were made because a GPU was full."""
    fallbacks: tuple[Fallback, ...] = ()
    step_devices: tuple[str, ...] = ()
    """The device that each step ran on, where not all ran on the one that was asked for."""


Execute: TypeAlias = Callable[[Pipeline, Rows], tuple[Rows, Report]]


@lru_cache(maxsize=PIPELINES_KEPT)
def pipeline_of(text: str) -> Pipeline:
    """The pipeline that a text describes; a worker is sent the same one with every task."""
    try:
        return msgspec.json.decode(text, type=Pipeline)
    except msgspec.ValidationError as error:
        raise BadCall(
            f"the plug-in describes a pipeline that this version does not know ({error}); install "
            "the same version of penstock on the driver and on the executors",
            code="unknown_pipeline",
        ) from error


def execute(pipeline: Pipeline, rows: Rows, clock: Clock = SYSTEM_CLOCK) -> tuple[Rows, Report]:
    """The rows that a pipeline makes of these, and its report."""
    taken = rows.count
    times: list[EventTimes | None] = []
    step_us: list[int] = []
    step_bytes: list[int] = []
    step_rows: list[int] = []
    for place, step in enumerate(pipeline.steps):
        step_bytes.append(rows.size_bytes)
        step_rows.append(rows.count)
        began_s = clock.monotonic_s()
        if isinstance(step, EventTime):
            times.append(event_times(column(step.time, rows)))
        elif isinstance(step, Filter):
            rows = rows_where(step.condition, rows, columns_needed(pipeline.steps[place + 1 :]))
        else:
            rows = after(step, rows)
        step_us.append(round((clock.monotonic_s() - began_s) * 1_000_000))
    sizes = tuple(step_bytes), tuple(step_rows)
    return rows, Report(taken, tuple(times), tuple(step_us), *sizes)


def columns_needed(steps: Sequence[Step]) -> frozenset[int] | None:
    """The places of the columns that steps read of the rows that go into the first of them; None:
    all, as they go on to whoever takes the result."""
    needed: frozenset[int] = frozenset()
    for step in steps:
        match step:
            case Filter(condition):
                needed |= columns_read(condition)
            case EventTime(time):
                needed |= columns_read(time)
            case Project(columns):
                return needed | columns_read(*columns)
            case Expand(projections):
                return needed.union(*(columns_read(*each) for each in projections))
            case Grouped(keys, aggregates):
                read = [(*each.arguments, each.where) for each in aggregates]
                values = (value for each in read for value in each if value is not None)
                return needed | columns_read(*keys, *values)
            case _:
                return None
    return None


def after(step: Step, rows: Rows) -> Rows:
    """The rows after a step that changes them."""
    match step:
        case Filter():
            return rows_where(step.condition, rows)
        case Project():
            return Rows(tuple(column(each, rows) for each in step.columns), rows.count)
        case Expand():
            return expand(step.projections, rows)
        case Parse():
            return parsed(step, rows)
        case Joined():
            table = static_table(step.table)
            return join(step.keys, table, step.table_keys, rows, step.how)
        case Grouped():
            return aggregate(step.keys, step.aggregates, rows)
        case Sorted():
            return sort(step.keys, rows) if step.count is None else top(step.keys, step.count, rows)
        case EventTime():
            return rows


def parsed(step: Parse, rows: Rows) -> Rows:
    """The rows with the fields of their text after their columns."""
    lines = column(step.text, rows)
    if step.format == "csv":
        fields = parse_csv(lines, step.fields, step.separator)
    else:
        fields = parse_json_lines(lines, step.fields)
    return Rows((*rows.columns, *fields.columns), rows.count)


@lru_cache(maxsize=TABLES_KEPT)
def static_table(stream: bytes) -> Rows:
    """The rows of a table from a stream of Arrow; those of the last few are kept."""
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    columns = tuple(
        pa.concat_arrays(each.chunks) if each.num_chunks else pa.array([], each.type)
        for each in table.columns
    )
    return Rows(columns, table.num_rows)


def event_times(times: pa.Array) -> EventTimes | None:
    """Count, bounds and mean of times, in milliseconds."""
    if not len(times):
        return None
    ms = np.floor_divide(numbers_of(times.cast(pa.int64())), US_PER_MS)
    return EventTimes(len(ms), int(ms.min()), int(ms.max()), float(ms.mean()))


def execution_on(device: str) -> Execute:
    """The execution of pipelines on a device; raises BadCall where this build has none."""
    if device == CPU:
        return execute
    try:
        module = importlib.import_module(DEVICE_MODULES[device])
        run: Execute = module.execute
    except (ImportError, KeyError) as error:
        raise BadCall(
            f"the device {device} was asked for (spark.penstock.devices), and this build has no "
            "operations for it; set it to auto, panes or cpu",
            code="no_device",
        ) from error
    return run
