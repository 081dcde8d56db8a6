"""What must be true of streams and queries that change, worked out from the operations alone.

Rows lie where the division of their time puts them, no batch spans a change of it, nothing of a
deleted stream shows in another of its name, and no consumer of it is known there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import xxhash

from penstock.log.contract import Entry
from penstock.log.operations import (
    AlterStream,
    AppendPending,
    AppendRows,
    CreateStream,
    DeleteStream,
    Operation,
    Register,
    Shape,
)
from penstock.log.state import ConsumerRecord, StreamRecord
from penstock.model.ids import BEFORE_ALL, Lsn
from simulation.log.replica import Applied
from simulation.release.setup import Violation


def place_of(value: str, substreams: int) -> int:
    """Where a row goes by its key, which is the row itself."""
    return xxhash.xxh3_64_intdigest(value.encode()) % substreams


@dataclass
class Life:
    """One stream from its making to its end; another of the same name is another life."""

    id: int
    name: str
    substreams: int
    schemas: list[bytes]
    began: Lsn
    end: Lsn  # its last commit
    turns: list[Lsn] = field(default_factory=list)


class Lives:
    """Every stream there is, by name, and what is left of those before it."""

    def __init__(self) -> None:
        self.current: dict[str, Life] = {}
        self.ends: dict[str, Lsn] = {}  # the last commit of the one before it
        self.lives: dict[Lsn, int] = {}  # which stream an entry is of
        self.changes = 0

    def key(self, tag: str) -> str:
        """The tag, told from the same tag of a stream that had the name before."""
        life = self._life(tag)
        return tag if life is None else f"{tag}#{life.id}"

    def _life(self, tag: str) -> Life | None:
        kind, _, rest = tag.partition("/")
        return self.current.get(rest.rpartition("/")[0]) if kind == "s" else None

    def observe(self, operation: Operation, outcome: Applied) -> None:
        """Follow what changes streams; `outcome` is no refusal."""
        match operation:
            case CreateStream() if outcome.answer.created:
                self._made(outcome.answer.stream, operation.substreams or 1)
            case AlterStream():
                self._altered(operation)
            case DeleteStream():
                self.ends[operation.name] = self.current.pop(operation.name).end
                self.changes += 1
            case Register():
                self._registered(operation, outcome.answer)
            case AppendRows() | AppendPending() if outcome.plan is not None:
                for entry in outcome.plan.entries:
                    self._appended(operation, entry)

    def _made(self, made: StreamRecord, substreams: int) -> None:
        end = self.ends.get(made.name, BEFORE_ALL)
        if made.began < end:
            raise Violation(f"the stream {made} begins before the end of another, which is {end}")
        self.current[made.name] = Life(
            made.id, made.name, substreams, [made.schema], made.began, made.began
        )
        self.changes += 1

    def _altered(self, operation: AlterStream) -> None:
        life = self.current[operation.name]
        if operation.schema is not None and operation.schema != life.schemas[-1]:
            life.schemas.append(operation.schema)
            self.changes += 1
        if operation.substreams is not None and operation.substreams != life.substreams:
            life.substreams = operation.substreams
            life.turns.append(life.end)
            self.changes += 1

    def _registered(self, operation: Register, answer: ConsumerRecord) -> None:
        life = self.current.get(operation.stream)
        if life is None or answer.position < life.began:
            raise Violation(
                f"{operation.name} is known at {answer.position} in the stream {operation.stream}, "
                f"as it was before the one that is there: {life}"
            )

    def _appended(self, operation: AppendRows | AppendPending, entry: Entry) -> None:
        life = self.current.get(operation.stream)
        shape, lsn = operation.shape, entry.head.lsn
        if life is None:
            raise Violation(f"entry {lsn} is in the stream {operation.stream}, which is deleted")
        self.lives[lsn] = life.id
        self._check_shape(life, shape, entry)
        value = entry.payload.decode()
        if isinstance(operation, AppendRows):
            life.end = max(life.end, lsn)
            here = place_of(value, life.substreams)
            if entry.head.tags[0] != f"s/{life.name}/{here}":
                raise Violation(
                    f"entry {lsn} is under {entry.head.tags[0]}, and its key goes to substream "
                    f"{here} of {life.substreams}"
                )

    def _check_shape(self, life: Life, shape: Shape | None, entry: Entry) -> None:
        if shape is None:
            return
        if shape.stream_id != life.id:
            raise Violation(f"entry {entry.head.lsn} was made for the stream before {life}")
        if entry.head.version != shape.version or entry.head.version >= len(life.schemas):
            raise Violation(
                f"entry {entry.head.lsn} says it has version {entry.head.version} of the columns, "
                f"and it was written with {shape.version} of {len(life.schemas)}"
            )

    def check_shown(self, lsn: Lsn, by: Lsn, tag: str) -> None:
        """A marker names an entry: it must be of the stream that has the name now."""
        life = self._life(tag)
        if life is None or self.lives[lsn] != life.id:
            raise Violation(f"the marker {by} shows entry {lsn} of a deleted stream, under {tag}")
        life.end = max(life.end, by)

    def check_cut(self, stream: str, after: int, until: int) -> None:
        """No batch has rows from before and after a change of the division."""
        turns = [turn for turn in self.current[stream].turns if after < turn < until]
        if turns:
            raise Violation(f"a batch reads ({after}, {until}], over the change at {turns}")
