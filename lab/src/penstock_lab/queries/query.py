"""Queries apart from their text: what they read and write, how, and in which steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame

from penstock.errors import BadCall

Frames: TypeAlias = Mapping[str, DataFrame]
Mode: TypeAlias = Literal["append", "update", "complete"]
CACHE_BYTES = 64 << 20
"""Of a worker's cache of looked-up values."""


@dataclass(frozen=True)
class Watermark:
    """The lateness allowed to the rows of an input, as the stage declares it.

    `where` is SQL for the rows that reach Spark's watermark: a filter on other columns is moved
    below it, so what it drops does not move event time.
    """

    stream: str
    column: str
    delay_ms: int
    where: str = "true"


@dataclass(frozen=True)
class Stage:
    """One streaming query: ordinary PySpark from streams to a stream.

    Without `key` the rows written are all of the answer; with it, a later row with the same key
    replaces the earlier one. In complete mode the rows of a batch replace all those before it.
    `ranked` names the columns that a sorted answer is sorted within; their rows are written
    together, in the order of the column `rank`.
    """

    name: str
    """Of the query, its checkpoint and the stream it writes."""
    reads: tuple[str, ...]
    columns: str
    """The rows it writes, as the log's DDL."""
    build: Callable[[Frames], DataFrame]
    mode: Mode = "append"
    key: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    lookup: str | None = None
    """The name that `penstock.enrich` counts under, in a stage that looks something up with it."""

    @property
    def route(self) -> tuple[str, ...]:
        """The columns to route the output by, so that a reader finds what belongs together."""
        return self.key or self.ranked


@dataclass(frozen=True)
class Query:
    """A query by the name the tables use. The last stage writes the answer."""

    name: str
    family: str
    """Queries of one family are one text with other `parameters`."""
    stages: tuple[Stage, ...]
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The streams that must be fed."""
        made = {stage.name for stage in self.stages}
        read = dict.fromkeys(name for stage in self.stages for name in stage.reads)
        return tuple(name for name in read if name not in made)

    def stage(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        known = ", ".join(stage.name for stage in self.stages)
        raise BadCall(f"{self.name} has no stage {name}; it has {known}", code="unknown_query")


def seconds(count: int) -> str:
    """A duration as Spark's windows and watermarks take it."""
    return f"{count} seconds"
