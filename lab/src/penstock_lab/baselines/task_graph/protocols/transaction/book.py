"""The book of a transaction coordinator, what it knows and decides: pure, made from its stream.

A task has one transaction at a time: registered substreams, then prepared, then done. Numbers count
up with each, so that a call made twice is told from the next one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from penstock.errors import BadCall, Fenced
from penstock.model.ids import BEFORE_ALL, Instance, Lsn
from penstock_lab.baselines.task_graph.messages import Step

NOBODY = Instance(0)


@dataclass
class Line:
    """One task's newest transaction."""

    instance: Instance = NOBODY
    number: int = 0
    state: Literal["open", "prepared", "done"] = "done"
    tags: set[str] = field(default_factory=set)
    first: int = 0
    last: int = 0
    offsets: Lsn = BEFORE_ALL
    """Of the newest transaction that was prepared."""
    since: Lsn = BEFORE_ALL
    """The steps from this place on say all of this."""


class Book:
    """Every task's line. A step is decided by one of the calls, and `note`d once it is durable."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}

    def line(self, task: str) -> Line:
        return self.lines.setdefault(task, Line())

    def note(self, step: Step, lsn: Lsn) -> None:
        line = self.line(step.task)
        if step.number != line.number:
            line.tags = set()
        line.instance, line.number = step.instance, step.number
        line.offsets = max(line.offsets, step.offsets)
        match step.kind:
            case "begin":
                line.state, line.tags, line.since = "done", set(), lsn
            case "register":
                line.state = "open"
                if line.tags <= set(step.tags):
                    line.since = lsn
                line.tags |= set(step.tags)
            case "prepare":
                line.state, line.first, line.last = "prepared", step.first, step.last
            case "done":
                line.state, line.since = "done", lsn
            case other:
                raise BadCall(f"there is no step {other!r}", code="bad_request")

    def begin(self, task: str) -> Step:
        line = self.line(task)
        return self._step("begin", task, Instance(line.instance + 1), line.number)

    def register(
        self, task: str, instance: Instance, number: int, tags: Iterable[str]
    ) -> Step | None:
        """The step that registers missing tags, if any; the transaction before must be done."""
        line = self._mine(task, instance)
        if number < line.number or (number > line.number and line.state != "done"):
            raise BadCall(
                f"{task} registers for transaction {number}, and {line.number} is {line.state}",
                code="bad_request",
            )
        known = line.tags if number == line.number else set()
        missing = tuple(tag for tag in tags if tag not in known)
        return self._step("register", task, instance, number, missing) if missing else None

    def prepare(
        self, task: str, instance: Instance, number: int, first: int, last: int, offsets: Lsn
    ) -> Step | None:
        """The step that prepares this transaction; None if it is prepared, or done."""
        line = self._mine(task, instance)
        if number == line.number and line.state != "open":
            return None
        if number != line.number:
            raise BadCall(
                f"{task} commits transaction {number}, and {line.number} is {line.state}",
                code="bad_request",
            )
        return Step("prepare", task, instance, number, (), first, last, offsets)

    def done(self, task: str) -> Step:
        line = self.line(task)
        return self._step("done", task, line.instance, line.number)

    def anew(self, task: str) -> Step:
        """One step that says all of a line that is open or done."""
        line = self.line(task)
        if line.state == "open":
            tags = tuple(sorted(line.tags))
            return self._step("register", task, line.instance, line.number, tags)
        return self.done(task)

    def said_before(self, place: Lsn) -> list[str]:
        """Tasks of which nothing after that place says all."""
        begun = (task for task, line in self.lines.items() if line.instance != NOBODY)
        return [task for task in begun if self.lines[task].since < place]

    def needed(self) -> list[Lsn]:
        """The places where the steps begin that a recovery needs, of each task."""
        return [line.since for line in self.lines.values() if line.instance != NOBODY]

    def _step(
        self, kind: str, task: str, instance: Instance, number: int, tags: tuple[str, ...] = ()
    ) -> Step:
        """Every step names the offsets, so that those before it are not needed for them."""
        return Step(kind, task, instance, number, tags, offsets=self.line(task).offsets)

    def unfinished(self) -> list[str]:
        """Tasks whose transaction is prepared: it will be committed, whatever happens."""
        return [task for task, line in self.lines.items() if line.state == "prepared"]

    def _mine(self, task: str, instance: Instance) -> Line:
        line = self.line(task)
        if instance != line.instance:
            raise Fenced(
                f"{task} has the instance {line.instance}; {instance} must end", code="fenced"
            )
        return line
