"""The reader of the raw log: which entries are committed, which never will be, which nobody knows.

Facts go in, in the order of the log; verdicts come out, in the order of commits. A marker settles
the entries of its own producer at once, so that nobody waits behind another producer. There is no
input or output here; the same facts give the same verdicts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Literal

import msgspec

from penstock.errors import BadCall, Bug
from penstock.log.raw.entry_facts import Fact, Marks, Plain, Raw, Takes
from penstock.log.raw.repeats import Duplicates, Seen
from penstock.model.ids import BEFORE_ALL, Instance, Lsn

Reason = Literal["repeat", "older instance", "not named", "late"]


class Committed(msgspec.Struct, frozen=True):
    """An entry every reader may use, and the commit that says so; itself, if it needs no other.

    `payload` is None where the buffer had no room for it: read it again, by its LSN.
    """

    lsn: Lsn
    by: Lsn
    payload: bytes | None


class Discarded(msgspec.Struct, frozen=True):
    """An entry that nobody will ever use."""

    lsn: Lsn
    reason: Reason


class Recall(msgspec.Struct, frozen=True):
    """A marker of a producer whose entries the buffer had no room to remember.

    Read the same tags again from `first` up to the marker, and give what comes to
    `Classifier.recall` before any later fact.
    """

    marks: Marks
    first: Lsn


Verdict = Committed | Discarded | Recall


class Bounds(msgspec.Struct, frozen=True):
    """The most a reader remembers, and what it does beyond that.

    `unknown_bytes_max`: further payloads are read again when their marker comes. `unknown_max`:
    the producer with the most entries is set aside, and read again when its marker comes.
    `producers_max`: the producer silent longest is forgotten, which is safe because markers count
    upwards; of producers that commit themselves, see `Duplicates`. `aside_max`: of one that has
    entries waiting, where they begin is remembered, and one more such producer is refused.
    """

    unknown_max: int = 100_000
    unknown_bytes_max: int = 64 << 20
    producers_max: int = 10_000
    repeats_kept_ms: int = 600_000
    aside_max: int = 100_000


class Saved(msgspec.Struct, frozen=True):
    """The place at which a reader goes on after a restart: feed the log from `first` on.

    What commits up to `position` gave out is not given out again. Keep it in one step with what
    was done with the verdicts. `first` stays where a producer left entries without a marker; take
    over one that does not come back, which discards them.
    """

    position: Lsn = BEFORE_ALL
    first: Lsn = Lsn(1)
    seen: tuple[Seen, ...] = ()


@dataclass
class _Line:
    """One producer: its newest instance, the number its markers have settled, what waits."""

    instance: Instance
    through: int = -1
    held: dict[Lsn, Raw] = field(default_factory=dict)
    aside: Lsn | None = None  # entries from here on are not remembered

    @property
    def first(self) -> Lsn | None:
        """The first entry that a marker may still commit."""
        return self.aside if self.aside is not None else next(iter(self.held), None)


class Classifier:
    """State of one reader of one or more tags. Feed every entry of these tags once, in order."""

    def __init__(self, bounds: Bounds | None = None, saved: Saved | None = None) -> None:
        self._bounds = bounds or Bounds()
        saved = saved or Saved()
        self._lines: OrderedDict[str, _Line] = OrderedDict()  # the longest silent first
        self._away: dict[str, _Line] = {}  # those forgotten but for where their entries begin
        self._count = self._bytes = 0
        self._given = saved.position
        self._next = saved.first
        self._asked: Recall | None = None
        self._repeats = Duplicates(self._bounds.repeats_kept_ms, self._bounds.producers_max)
        self._repeats.restore(saved.seen)

    @property
    def unknown(self) -> int:
        """The number of entries held."""
        return self._count

    @property
    def unknown_bytes(self) -> int:
        """The payloads held, in bytes."""
        return self._bytes

    @property
    def producers(self) -> int:
        """The number of producers remembered, both those that mark and those that do not."""
        return len(self._lines) + len(self._repeats)

    def saved(self) -> Saved:
        """The place to go on from after what was given out so far."""
        lines = chain(self._lines.values(), self._away.values())
        waiting = [line.first for line in lines if line.first is not None]
        return Saved(self._given, min(waiting, default=self._next), self._repeats.saved())

    def feed(self, fact: Fact) -> list[Verdict]:
        """The verdicts that are known now and were not before. A `Recall` must be answered before
        the next."""
        if fact.lsn < self._next or self._asked is not None:
            raise Bug(
                f"the entry {fact.lsn} was fed out of order; the next is {self._next} or later"
                + (", after the recall" if self._asked is not None else ""),
                code="bug",
            )
        self._next = Lsn(fact.lsn + 1)
        match fact:
            case Plain():
                return self._plain(fact)
            case Raw():
                return self._raw(fact)
            case Marks():
                return self._marks(fact)
            case Takes():
                return self._line(fact.producer, fact.instance)[1]

    def _plain(self, fact: Plain) -> list[Verdict]:
        if fact.lsn <= self._given:
            return []  # the filter that was saved has seen it
        if (
            fact.producer is not None
            and fact.seq is not None
            and self._repeats.is_repeat(fact.producer, fact.seq, fact.arrived_at_ms)
        ):
            return [Discarded(fact.lsn, "repeat")]
        self._given = fact.lsn
        return [Committed(fact.lsn, fact.lsn, fact.payload)]

    def _raw(self, fact: Raw) -> list[Verdict]:
        line, verdicts = self._line(fact.producer, fact.instance)
        if fact.instance < line.instance:
            return [*verdicts, Discarded(fact.lsn, "older instance")]
        if fact.number <= line.through:
            return [*verdicts, Discarded(fact.lsn, "late")]
        if line.aside is None:
            self._hold(line, fact)
        return verdicts

    def _line(self, producer: str, instance: Instance) -> tuple[_Line, list[Verdict]]:
        """The producer's line; a newer instance discards what older ones left."""
        line = self._lines.get(producer)
        if line is None:
            line = self._lines[producer] = self._away.pop(producer, _Line(instance))
            if len(self._lines) > self._bounds.producers_max:
                self._forget()
        self._lines.move_to_end(producer)
        if instance <= line.instance:
            return line, []
        left: list[Verdict] = [Discarded(lsn, "older instance") for lsn in line.held]
        self._release(line)
        line.instance, line.through, line.aside = instance, -1, None
        return line, left

    def _forget(self) -> None:
        producer, line = self._lines.popitem(last=False)
        line.aside = line.first
        self._release(line)
        if line.aside is None:
            return
        if len(self._away) >= self._bounds.aside_max:
            raise BadCall(
                f"the producer {producer!r} is one too many of {len(self._away) + 1} whose entries "
                "wait for a marker; take over those that do not come back, or raise aside_max",
                code="too_many_producers",
            )
        self._away[producer] = line

    def _hold(self, line: _Line, fact: Raw) -> None:
        if self._bytes + _size(fact) > self._bounds.unknown_bytes_max:
            fact = msgspec.structs.replace(fact, payload=None)
        line.held[fact.lsn] = fact
        self._count += 1
        self._bytes += _size(fact)
        if self._count > self._bounds.unknown_max:
            fullest = max(self._lines.values(), key=lambda each: len(each.held))
            fullest.aside = fullest.first
            self._release(fullest)

    def _release(self, line: _Line) -> None:
        self._count -= len(line.held)
        self._bytes -= sum(_size(raw) for raw in line.held.values())
        line.held = {}

    def _marks(self, fact: Marks) -> list[Verdict]:
        line, verdicts = self._line(fact.producer, fact.instance)
        if fact.instance < line.instance:
            raise Bug(
                f"the marker {fact.lsn} of {fact.producer!r} is of instance {fact.instance}, after "
                f"instance {line.instance} took over: it was appended past the fence; append "
                "markers on condition that the task log has not moved",
                code="fence_broken",
            )
        if line.aside is not None:
            self._asked = Recall(fact, line.aside)
            return [*verdicts, self._asked]
        entries = list(line.held.values())
        return verdicts + self._settle(line, fact, entries)

    def recall(self, asked: Recall, facts: Iterable[Fact]) -> list[Verdict]:
        """Answer a `Recall` with what was read again, from its `first` up to its marker."""
        if asked is not self._asked:
            raise Bug(f"the recall for the marker {asked.marks.lsn} is not open", code="bug")
        self._asked = None
        line = self._lines[asked.marks.producer]
        line.aside = None
        again = (
            fact
            for fact in facts
            if isinstance(fact, Raw)
            and (fact.producer, fact.instance) == (asked.marks.producer, line.instance)
            and line.through < fact.number
            and fact.lsn < asked.marks.lsn
        )
        return self._settle(line, asked.marks, again)

    def _settle(self, line: _Line, marks: Marks, entries: Iterable[Raw]) -> list[Verdict]:
        """Commit and discard what the marker decides on, and hold the rest."""
        committed: dict[int, Raw] = {}
        discarded: list[Verdict] = []
        rest: list[Raw] = []
        names = None if marks.names is None else {lsn: n for n, lsn in enumerate(marks.names)}
        for raw in entries:
            if raw.number > marks.through:
                rest.append(raw)
                continue
            place = _place(raw, marks, names)
            if place is None:
                discarded.append(Discarded(raw.lsn, "not named"))
            elif place in committed:
                discarded.append(Discarded(raw.lsn, "repeat"))
            else:
                committed[place] = raw
        self._release(line)
        line.through = max(line.through, marks.through)
        for raw in rest:
            if line.aside is None:
                self._hold(line, raw)
        if marks.lsn <= self._given:
            return discarded
        self._given = marks.lsn
        order = sorted(committed) if names is not None else committed
        given: list[Verdict] = [
            Committed(committed[place].lsn, marks.lsn, committed[place].payload) for place in order
        ]
        return given + discarded


def _place(raw: Raw, marks: Marks, names: dict[Lsn, int] | None) -> int | None:
    """Where the entry stands among those the marker commits; None if it is not among them.

    Entries that are named stand in the order of the names; those of a span, in that of the log.
    """
    if names is not None:
        return names.get(raw.lsn)
    if raw.number < marks.first:
        return None
    return raw.number if raw.once else raw.lsn


def _size(raw: Raw) -> int:
    return len(raw.payload) if raw.payload else 0
