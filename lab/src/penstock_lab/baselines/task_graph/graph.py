"""Task graphs: stages of tasks with streams between them, and the tags all of it has.

A stream has one substream for each task of the stage that reads it, and task `n` reads substream
`n` alone. The answer is a stream that no stage reads; it has one substream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from penstock.errors import BadCall
from penstock_lab.baselines.task_graph.messages import Row
from penstock_lab.baselines.task_graph.state import State

Emit: TypeAlias = Callable[[int, Row], None]
"""Called with the key a row is routed by, and the row."""


class Operator(Protocol):
    """The computation of a stage. It keeps nothing outside the state it is given."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None: ...

    def sweep(self, passed_us: int, state: State) -> None:
        """Drop what no row can change any more, now that event time is past `passed_us`."""
        ...


@dataclass(frozen=True)
class Stage:
    name: str
    reads: str
    writes: str
    tasks: int
    make: Callable[[], Operator]
    is_stateful: bool = True


@dataclass(frozen=True)
class Task:
    """One task of a graph that runs: `run` keeps two runs on one log apart."""

    run: str
    stage: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.run}.{self.stage}.{self.number}"

    @property
    def log_tag(self) -> str:
        return f"task/{self.name}"

    @property
    def changes_tag(self) -> str:
        return f"changes/{self.name}"

    @property
    def offsets_tag(self) -> str:
        return f"offsets/{self.name}"

    @property
    def checkpoints_tag(self) -> str:
        return f"state/{self.name}"


@dataclass(frozen=True)
class Graph:
    """Stages in the order data flows; the first reads the sources."""

    name: str
    stages: tuple[Stage, ...]

    @property
    def source(self) -> str:
        return self.stages[0].reads

    @property
    def answer(self) -> str:
        return self.stages[-1].writes

    def stage(self, name: str) -> Stage:
        for stage in self.stages:
            if stage.name == name:
                return stage
        known = ", ".join(stage.name for stage in self.stages)
        raise BadCall(f"{self.name} has no stage {name}; it has {known}", code="unknown_query")

    def substreams(self, stream: str) -> int:
        return next((stage.tasks for stage in self.stages if stage.reads == stream), 1)

    def tags(self, run: str, stream: str) -> tuple[str, ...]:
        return tuple(stream_tag(run, stream, n) for n in range(self.substreams(stream)))

    def tasks(self, run: str) -> tuple[Task, ...]:
        return tuple(
            Task(run, stage.name, number) for stage in self.stages for number in range(stage.tasks)
        )

    def producers(self, run: str, stream: str) -> tuple[str, ...]:
        """The tasks that write a stream; none for the sources."""
        return tuple(
            Task(run, stage.name, number).name
            for stage in self.stages
            if stage.writes == stream
            for number in range(stage.tasks)
        )


def stream_tag(run: str, stream: str, substream: int) -> str:
    return f"rows/{run}/{stream}/{substream}"


def transactions_tag(run: str) -> str:
    """The coordinator's own stream."""
    return f"transactions/{run}"


def checkpoints_tag(run: str) -> str:
    """The tag under which the complete checkpoints of the whole graph stand."""
    return f"epochs/{run}"
