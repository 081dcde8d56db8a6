"""The facts that an entry tells a reader of the raw log, whatever kind of writer appended it.

Batches of queries and spans of tasks come to the same four facts: an entry commits itself, waits
for a marker, is a marker, or is a take-over.
"""

from __future__ import annotations

import msgspec

from penstock.log.contract import Entry
from penstock.model.ids import Instance, Lsn
from penstock.model.marker import Marker, TakeOver
from penstock.model.task_records import Claim, decode_control


class Plain(msgspec.Struct, frozen=True):
    """An entry that commits itself. With `producer` and `seq` it may be a repeat of another.

    The rows of a stream carry neither here: the log lets no repeat of them in, and what it lets in
    is visible to every reader alike.
    """

    lsn: Lsn
    payload: bytes
    arrived_at_ms: int
    producer: str | None = None
    seq: int | None = None


class Raw(msgspec.Struct, frozen=True):
    """An entry that waits for a marker of its producer.

    `number` is what markers count in: the batch of a query, shared by all entries of the batch, or
    the sequence of a task's record, where a second entry with the same one is a repeat (`once`).
    A payload of None is one that must be read again.
    """

    lsn: Lsn
    payload: bytes | None
    producer: str
    instance: Instance
    number: int
    once: bool = False


class Marks(msgspec.Struct, frozen=True):
    """A marker: decides on everything of its instance with a number up to `through`.

    `names` lists the entries it commits, in order; None means all from number `first` on.
    """

    lsn: Lsn
    producer: str
    instance: Instance
    through: int
    first: int = 0
    names: tuple[Lsn, ...] | None = None


class Takes(msgspec.Struct, frozen=True):
    """A take-over: no marker of an older instance follows."""

    lsn: Lsn
    producer: str
    instance: Instance


Fact = Plain | Raw | Marks | Takes


def fact_of(entry: Entry) -> Fact | None:
    """The fact an entry tells; None for one that is no business of readers, such as a file."""
    head, payload = entry.head, entry.payload
    match head.kind:
        case "rows":
            return Plain(head.lsn, payload, head.arrived_at_ms)
        case "pending":
            stamp = head.stamp
            assert stamp is not None  # every pending entry has one
            return Raw(head.lsn, payload, stamp.query, stamp.instance, stamp.batch)
        case "marker":
            return marks_of(head.lsn, msgspec.json.decode(payload, type=Marker))
        case "take over":
            taken = msgspec.json.decode(payload, type=TakeOver)
            return Takes(head.lsn, taken.query, taken.instance)
        case "record":
            return _record(entry)
        case _:
            return None


def marks_of(lsn: Lsn, marker: Marker) -> Marks:
    """A query's marker names its entries one by one: those of failed attempts lie among them."""
    names = tuple(entry for write in marker.writes for entry in write.entries)
    return Marks(lsn, marker.query, marker.instance, marker.batch, names=names)


def _record(entry: Entry) -> Fact:
    head, payload = entry.head, entry.payload
    if head.producer is None or head.instance is None:
        return Plain(head.lsn, payload, head.arrived_at_ms, head.producer, head.seq)
    if head.seq is not None:
        return Raw(head.lsn, payload, head.producer, head.instance, head.seq, once=True)
    control = decode_control(payload)
    if isinstance(control, Claim):
        return Takes(head.lsn, control.producer, control.instance)
    return Marks(head.lsn, control.producer, control.instance, control.last, control.first)
