"""Payloads of a task graph's entries: rows, changes of state, and the words of each protocol.

Every payload here is MessagePack, known by its first field. Markers and take-overs are not
here: they are the control records of `penstock.model.task_records`, with what a task adds to them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from penstock.log.raw.repeats import Seen
from penstock.model.ids import Instance, Lsn
from penstock.model.task_records import Claim, Progress

Row: TypeAlias = tuple[Any, ...] | list[Any]
Change: TypeAlias = tuple[str, int, Any] | list[Any]
"""Table, key and the new value; None takes the key away."""


class Rows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """Rows for one substream; `clock_us` is the event time their producer had reached.

    `epoch` is the checkpoint they belong to, where there are such.
    """

    clock_us: int
    rows: list[Any] | msgspec.Raw
    epoch: int = 0


class Changes(msgspec.Struct, frozen=True, array_like=True, tag="changes"):
    """Changes in the state of a task, the last value of each key."""

    changes: list[Any]


class Offsets(msgspec.Struct, frozen=True, array_like=True, tag="offsets"):
    """Places up to which a transaction has read its input, on the stream kept for that."""

    position: Lsn
    reread: Lsn
    seen: tuple[Seen, ...] = ()


class Snapshot(msgspec.Struct, frozen=True, array_like=True, tag="snapshot"):
    """A part of the state of a task as of a marker."""

    part: bytes


class Step(msgspec.Struct, frozen=True, array_like=True, tag="step"):
    """A step of a transaction on the coordinator's own stream."""

    kind: str
    """`begin` an instance, `register` substreams, `prepare` to commit, `done`."""
    task: str
    instance: Instance
    number: int
    """Of the transaction, counted by the task."""
    tags: tuple[str, ...] = ()
    first: int = 0
    last: int = 0
    offsets: Lsn = Lsn(0)


class Barrier(msgspec.Struct, frozen=True, array_like=True, tag="barrier"):
    """Parts the entries of one checkpoint from those of the next, on every substream."""

    epoch: int


class Completed(msgspec.Struct, frozen=True, array_like=True, tag="completed"):
    """A checkpoint of all tasks is durable: what came before its barriers is committed."""

    epoch: int
    barrier: Lsn
    """The barrier in the sources: where a new attempt goes on reading them."""


class Restored(msgspec.Struct, frozen=True, array_like=True, tag="restored"):
    """A new attempt of the whole graph, from the checkpoint of `epoch`; 0 is the beginning."""

    attempt: Instance
    epoch: int
    barrier: Lsn


Payload: TypeAlias = Rows | Changes | Offsets | Snapshot | Step | Barrier | Completed | Restored
encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Payload).decode


class TaskMark(Progress, frozen=True, tag="progress", tag_field="is"):
    """A progress marker with where its task goes on: what is read again, and its checkpoint."""

    reread: Lsn = Lsn(1)
    """Entries of the input before this are settled; those up to the position may not be."""
    checkpoint: Lsn = Lsn(0)
    """The newest marker known to have a checkpoint; 0 for none."""
    seen: tuple[Seen, ...] = ()
    """What tells repeats in the input, of producers that wait for no marker."""


class Fence(Claim, frozen=True, tag="claim", tag_field="is"):
    """A take-over that says which marker was the last, so that nobody has to look for it."""

    marker: Lsn = Lsn(0)


encode_json = msgspec.json.Encoder().encode
decode_task_log = msgspec.json.Decoder(TaskMark | Fence).decode
