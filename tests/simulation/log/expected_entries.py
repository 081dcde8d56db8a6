"""What a simulated log holds, worked out anew from its entries alone, and what must be true of it.

1. One append commits a batch: a marker names entries of its own batch and instance, one attempt
   for each partition, the one that won.
5. Only the instance of the last take-over marks; batches are marked once, in order.
6. Recorded offsets are never cut anew; a marked batch is never marked again.
8. A producer's repeat is not a second append.

All servers come to the same outcome for the same operation.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple

import msgspec

from penstock.log.contract import Entry
from penstock.log.operations import (
    AppendFiles,
    AppendRecord,
    AppendRows,
    DeleteQuery,
    Mark,
    Operation,
    ResetQuery,
    TakeQuery,
)
from penstock.model.ids import Lsn
from penstock.model.marker import Marker, TakeOver
from penstock.model.task_records import Claim, Progress, decode_control
from simulation.log.expected_streams import Lives
from simulation.log.replica import Applied
from simulation.log.setup import INPUT
from simulation.release.setup import Violation


class Shown(NamedTuple):
    """An entry that is committed: by what, and its rank there; sorted as readers see them."""

    by: Lsn
    rank: int
    lsn: Lsn
    value: str


class Truth:
    """Follows the operations in the order of the log; `observe` checks each."""

    def __init__(self) -> None:
        self.outcomes: dict[int, Applied] = {}
        self.entries: dict[Lsn, Entry] = {}
        self.by_position: dict[str, list[Shown]] = {}  # per tag, as read by position
        self.by_reading: dict[str, list[Shown]] = {}  # per tag, as a reader of the raw log sees it
        self.instances: dict[str, int] = {}
        self.batches: dict[str, int] = {}
        self.cuts: dict[tuple[str, int], bytes] = {}
        self.winners: dict[tuple[str, int, int, int], tuple[Lsn, ...]] = {}
        self.states: dict[tuple[str, int, int, str], bytes] = {}  # files of state that won, by path
        self.lost = 0  # batches whose appends were answered and lost
        self.appended: dict[tuple[str, int], Lsn] = {}
        self.spans = self.trims = 0
        self.marked_by: dict[str, int] = {}
        self.claims: dict[str, int] = {}
        self.operations = 0
        self.lives = Lives()
        self.gone: set[str] = set()  # queries that are deleted

    def observe(self, server: int, place: int, operation: Operation, outcome: Applied) -> None:
        before = self.outcomes.setdefault(place, outcome)
        if before is not outcome:
            if _plain(before) != _plain(outcome):
                raise Violation(
                    f"server {server} says {_plain(outcome)} to operation {place}, another said "
                    f"{_plain(before)}"
                )
            return
        self.operations += 1
        if outcome.plan is not None and outcome.plan.removal is not None:
            self.trims += 1
        if outcome.refusal is None:
            self.lives.observe(operation, outcome)
        entries = outcome.plan.entries if outcome.plan is not None else ()
        for entry in entries:
            self.entries[entry.head.lsn] = entry
        if outcome.refusal is None and isinstance(operation, DeleteQuery):
            self._forget(operation.query)
            self.gone.add(operation.query)
        if entries:
            self._put(operation, entries)

    def _put(self, operation: Operation, entries: tuple[Entry, ...]) -> None:
        match operation:
            case AppendRows():
                self._rows(operation, entries)
            case TakeQuery():
                self._taken(entries[0])
            case ResetQuery():
                self._forget(operation.query)
                self._taken(entries[0])
            case AppendFiles():
                self._files(operation)
            case Mark():
                self._marked(entries[0])
            case AppendRecord():
                self._record(operation, entries[0])

    def _forget(self, query: str) -> None:
        """It begins with batch 0 again; its instances count on."""
        self.batches.pop(query, None)
        self.cuts = {key: cut for key, cut in self.cuts.items() if key[0] != query}

    def _rows(self, operation: AppendRows, entries: tuple[Entry, ...]) -> None:
        if operation.producer is not None and operation.sequence is not None:
            life = self.lives.current[operation.stream].id
            key = (f"{operation.producer} in {life}", operation.sequence)
            if key in self.appended:
                raise Violation(
                    f"invariant 8: {key} was appended at {self.appended[key]} and again at "
                    f"{entries[0].head.lsn}"
                )
            self.appended[key] = entries[0].head.lsn
        commit = entries[-1].head.lsn
        for rank, entry in enumerate(entries):
            lsn, value = entry.head.lsn, entry.payload.decode()
            tag = self.lives.key(entry.head.tags[0])
            insort(self.by_position.setdefault(tag, []), Shown(commit, rank, lsn, value))
            insort(self.by_reading.setdefault(tag, []), Shown(lsn, 0, lsn, value))

    def _taken(self, entry: Entry) -> None:
        taken = msgspec.json.decode(entry.payload, type=TakeOver)
        if taken.instance != self.instances.get(taken.query, 0) + 1:
            raise Violation(f"invariant 5: {taken} follows instance {self.instances}")
        self.instances[taken.query] = taken.instance
        self.gone.discard(taken.query)

    def _files(self, operation: AppendFiles) -> None:
        for file in operation.files:
            if not file.path.startswith("offsets/"):
                continue
            self._check_cut(file.payload)
            cut = self.cuts.setdefault((operation.query, operation.batch), file.payload)
            if cut != file.payload:
                raise Violation(
                    f"invariant 6: batch {operation.batch} was recorded as {cut!r} and is cut anew "
                    f"as {file.payload!r} by instance {operation.instance}"
                )

    def _check_cut(self, payload: bytes) -> None:
        cut = msgspec.json.decode(payload, type=tuple[int, ...])
        if cut:
            self.lives.check_cut(INPUT, *cut)

    def _marked(self, entry: Entry) -> None:
        marker = msgspec.json.decode(entry.payload, type=Marker)
        query, batch = marker.query, marker.batch
        if query in self.gone or marker.instance != self.instances.get(query):
            raise Violation(
                f"invariant 5: instance {marker.instance} marked batch {batch} under instance "
                f"{self.instances.get(query)}"
            )
        if batch != self.batches.get(query, -1) + 1:
            raise Violation(
                f"invariant 5: batch {batch} is marked after {self.batches.get(query, -1)}"
            )
        self.batches[query] = batch
        self.marked_by[query] = self.marked_by.get(query, 0) + 1
        cut = msgspec.json.decode(self.cuts[query, batch], type=tuple[int, ...])
        if tuple(marker.positions.values()) != cut[1:]:
            raise Violation(f"invariant 6: batch {batch} was cut as {cut}, not {marker.positions}")
        self._check_states(marker, entry.head.lsn)
        rank = 0
        for write in marker.writes:
            won = self.winners.get((query, marker.instance, batch, write.partition))
            if write.entries != won:
                raise Violation(
                    f"invariant 1: the marker {entry.head.lsn} names {write.entries} of partition "
                    f"{write.partition}, and {won} won"
                )
            for lsn in write.entries:
                self._show(lsn, entry.head.lsn, rank)
                rank += 1

    def _check_states(self, marker: Marker, lsn: Lsn) -> None:
        for file in marker.files:
            won = self.states.get((marker.query, marker.instance, marker.batch, file.path))
            if won is not None and self.entries[file.entry].payload != won:
                raise Violation(
                    f"a place used twice: the marker {lsn} names {file.path} at {file.entry}, "
                    f"where {self.entries[file.entry].payload!r} lies, and {won!r} was put"
                )

    def _show(self, lsn: Lsn, by: Lsn, rank: int) -> None:
        entry = self.entries[lsn]
        shown = Shown(by, rank, lsn, entry.payload.decode())
        self.lives.check_shown(lsn, by, entry.head.tags[0])
        tag = self.lives.key(entry.head.tags[0])
        insort(self.by_position.setdefault(tag, []), shown)
        insort(self.by_reading.setdefault(tag, []), shown)

    def _record(self, operation: AppendRecord, entry: Entry) -> None:
        head = entry.head
        if head.producer is None or head.instance is None:
            key = (head.producer or "", head.seq or 0)
            if self.appended.setdefault(key, head.lsn) == head.lsn:
                shown = Shown(head.lsn, 0, head.lsn, entry.payload.decode())
                insort(self.by_reading.setdefault(head.tags[0], []), shown)
            return
        if head.seq is not None:
            return
        control = decode_control(operation.payload)
        if isinstance(control, Claim):
            if control.instance != self.claims.get(control.producer, 0) + 1:
                raise Violation(f"invariant 5: {control} follows instance {self.claims}")
            self.claims[control.producer] = control.instance
            return
        self._progress(control, head.lsn)

    def _progress(self, control: Progress, by: Lsn) -> None:
        if control.instance != self.claims.get(control.producer):
            raise Violation(
                f"invariant 5: instance {control.instance} of {control.producer} marked under "
                f"instance {self.claims.get(control.producer)}"
            )
        self.spans += 1
        seen: set[int] = set()
        for lsn in sorted(self.entries):
            head = self.entries[lsn].head
            if (head.producer, head.instance) != (control.producer, control.instance):
                continue
            if head.seq is None or not control.first <= head.seq <= control.last or lsn > by:
                continue
            if head.seq not in seen:
                seen.add(head.seq)
                shown = Shown(by, len(seen), lsn, self.entries[lsn].payload.decode())
                insort(self.by_reading.setdefault(head.tags[0], []), shown)

    def until(self, tag: str, last: int, *, raw: bool) -> list[Shown]:
        """What a reader of the tag must have been given once it has come to `last`."""
        shown = self.shown(tag, raw=raw)
        return shown[: bisect_right(shown, last, key=lambda row: row.by)]

    def shown(self, tag: str, *, raw: bool, life: int | None = None) -> list[Shown]:
        """Everything committed under the tag, of the stream that is there or of the one named."""
        key = self.lives.key(tag) if life is None else f"{tag}#{life}"
        return (self.by_reading if raw else self.by_position).get(key, [])


def _plain(applied: Applied) -> object:
    if applied.refusal is not None:
        return (type(applied.refusal).__name__, applied.refusal.code)
    entries = applied.plan.entries if applied.plan is not None else ()
    return applied.answer, tuple(entry.head for entry in entries)
