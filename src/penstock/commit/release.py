"""Specification of `Release.scala`, which the driver runs; no product code imports this file.

It is explored by simulation (`tests/simulation/release`), and both forms are held to one set of
vectors (`tests/vectors/release.json`). A release says what of a query may become durable next. Per
batch the order is

    offsets/i  ->  state of i, every piece  ->  marker i  ->  commits/i  ->  offsets/i+1  -> ...

Without a log there is no marker, and durable means: in the checkpoint location. With a log, offsets
and pieces are durable in the log, the marker carries `commits/i` and commits the batch, and the
batch is copied to the location behind it, in order. Where nothing of a batch is shown or kept
outside the log before its marker, that may carry `offsets/i` too: an unmarked batch is then cut
anew. Effects of one kind are asked for one at a time; the caller does them and answers with `Done`
or `Failed`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.commit.events import (
    CommitWritten,
    CopyBatch,
    Delete,
    DeleteAsked,
    Done,
    Effect,
    Event,
    Failed,
    OffsetsWritten,
    PieceDurable,
    PieceWritten,
    PutCommit,
    PutMarker,
    PutOffsets,
    Stop,
    WriterLost,
    effect_name,
)


@dataclass
class Write:
    """Newest generation that one writer has announced of one piece, and the newest durable one.

    Both only grow, so the order of acks does not matter, nor how often one comes.
    """

    announced: int = 0
    durable: int = 0

    def is_durable(self) -> bool:
        """The newest write is durable; it supersedes the writes before it."""
        return self.durable >= self.announced


@dataclass
class Pieces:
    """Writes of the pieces of one batch, by piece and writer. Generations count from 1."""

    writes: dict[str, dict[str, Write]] = field(default_factory=dict)

    def written(self, piece: str, writer: str, generation: int) -> None:
        write = self._write(piece, writer)
        write.announced = max(write.announced, generation)

    def made_durable(self, piece: str, writer: str, generation: int) -> None:
        write = self._write(piece, writer)
        write.announced = max(write.announced, generation)
        write.durable = max(write.durable, generation)

    def is_known(self, piece: str) -> bool:
        return piece in self.writes

    def durable_write(self, piece: str, lost: set[str]) -> tuple[str, int] | None:
        """Writer and generation of the current write, if it is durable.

        None while any live writer has a write of the piece that is not durable.
        """
        writes = self.writes.get(piece, {})
        if any(not write.is_durable() and writer not in lost for writer, write in writes.items()):
            return None
        return min(
            ((writer, write.durable) for writer, write in writes.items() if write.is_durable()),
            default=None,
        )

    def is_lost(self, piece: str, lost: set[str]) -> bool:
        """The piece was written, and every writer that had it is lost before it was durable."""
        writes = self.writes.get(piece, {})
        return bool(writes) and all(
            not write.is_durable() and writer in lost for writer, write in writes.items()
        )

    def is_any_held(self, lost: set[str]) -> bool:
        """Some piece is written and may still become durable."""
        return any(
            not self.is_lost(piece, lost) and self.durable_write(piece, lost) is None
            for piece in self.writes
        )

    def is_any_lost(self, lost: set[str]) -> bool:
        return any(self.is_lost(piece, lost) for piece in self.writes)

    def holders(self, piece: str, lost: set[str]) -> list[str]:
        """Writers that have the piece and have not made it durable, by name."""
        late = {w for w, write in self.writes.get(piece, {}).items() if not write.is_durable()}
        return sorted(late - lost)

    def _write(self, piece: str, writer: str) -> Write:
        return self.writes.setdefault(piece, {}).setdefault(writer, Write())


@dataclass
class Batch:
    """State of one batch that is not in the location yet.

    `offsets`: Spark has closed `offsets/i`. `required`: the pieces it needs, known once Spark has
    closed `commits/i`. `writer_lost_early`: an executor was lost that may have held unannounced
    state of this batch.
    """

    offsets: bool = False
    required: frozenset[str] | None = None
    pieces: Pieces = field(default_factory=Pieces)
    writer_lost_early: bool = False


class Release:
    """Order of release for one run of one query.

    Batches below `first` are committed and in the location.

    `recorded`: the offsets of batch `first` were durable before this run began.
    `offsets_in_marker`: those of later ones go with their markers, if no state waits for them.
    """

    def __init__(
        self, first: int, *, recorded: bool, with_log: bool, behind: int = 8,
        offsets_in_marker: bool = False,
    ) -> None:  # fmt: skip
        self.with_log = with_log
        self.offsets_in_marker = offsets_in_marker
        self.behind = behind
        self.released = first if recorded else first - 1
        self.committed = first - 1
        self.copied = first - 1
        self.stopped: str | None = None
        self._batches: dict[int, Batch] = {}
        self._deletes: deque[tuple[int, str]] = deque()
        self._under_way: set[Effect] = set()
        self._lost: set[str] = set()

    def may_compute(self, batch: int) -> bool:
        """A batch may compute if the one before the last is committed, and the location is not more
        than `behind` batches behind the log."""
        return self.committed >= batch - 2 and self.copied >= batch - 2 - self.behind

    def may_make_durable(self, batch: int, *, is_large: bool) -> bool:
        """State of the batch may leave its writer: to the log at any time, because no reader uses
        it before a marker names it; to the location, where it goes if it is too large for the log,
        once the offsets of the batch are durable."""
        return (self.with_log and not is_large) or batch <= self.released

    def may_show_snapshot(self, batch: int, *, is_required: bool) -> bool:
        """A snapshot may enter the location. One that is required to recover its batch is a piece
        like any other. All others enter after their batch, because Spark deletes what is older than
        a snapshot, and it must be possible to continue from the location at all times."""
        return batch <= (self.released if is_required else self.copied)

    def is_idle(self) -> bool:
        """All that Spark has handed over is committed and in the location."""
        return not self._under_way and not self._deletes and self._last_held() <= self.copied

    def is_lost(self, batch: int, piece: str) -> bool:
        """The piece was written and can never become durable."""
        return batch in self._batches and self._batches[batch].pieces.is_lost(piece, self._lost)

    def is_held(self, batch: int) -> bool:
        """Some written state of the batch is not durable yet. A sink that skips a batch it has seen
        must not see the end of this one until then, or a rerun would not compute that state."""
        return batch in self._batches and self._batches[batch].pieces.is_any_held(self._lost)

    def has_lost(self, batch: int) -> bool:
        """Some written state of the batch can never become durable."""
        return batch in self._batches and self._batches[batch].pieces.is_any_lost(self._lost)

    def durable_writes(self, batch: int) -> dict[str, tuple[str, int]]:
        """The durable write of each required piece, as writer and generation, for the marker.

        Ask when `PutMarker` is asked for: a late attempt may write a piece anew while the marker is
        on its way, and then that piece is missing here.
        """
        held = self._batches[batch]
        writes = {
            piece: held.pieces.durable_write(piece, self._lost) for piece in held.required or ()
        }
        return {piece: write for piece, write in writes.items() if write is not None}

    def awaited(self) -> list[str]:
        """Names of what the release waits for: effects under way, and what the next commit lacks.

        For whoever waits for the release: it says for what, and names it when it gives up.
        """
        return sorted(effect_name(effect) for effect in self._under_way) + self._lacking()

    def on(self, event: Event) -> list[Effect]:
        """Take in an event; the effects to carry out in answer to it."""
        if self.stopped is not None or self._is_late(event):
            return []
        match event:
            case OffsetsWritten(batch):
                self._batch(batch).offsets = True
            case PieceWritten(batch, piece, writer, generation):
                self._batch(batch).pieces.written(piece, writer, generation)
            case PieceDurable(batch, piece, writer, generation):
                self._batch(batch).pieces.made_durable(piece, writer, generation)
            case CommitWritten(batch, required):
                self._batch(batch).required = required
            case DeleteAsked(path):
                self._deletes.append((self._last_held(), path))
            case WriterLost(writer):
                self._writer_lost(writer)
            case Done(effect):
                self._done(effect)
            case Failed(effect, reason):
                self._under_way.discard(effect)
                return self._stop(reason)
        return list(self._next())

    def _lacking(self) -> list[str]:
        """What others still owe the batch that commits next."""
        number = self.committed + 1
        batch = self._batches.get(number, Batch())
        if {PutOffsets(number), self._commit_of(number)} & self._under_way:
            return []
        if self.released < number and not batch.offsets:
            return [f"offsets/{number}, from Spark"]
        if batch.required is None:
            return [f"commits/{number}, from Spark"]
        return [
            self._missing(number, batch, piece)
            for piece in sorted(batch.required)
            if batch.pieces.durable_write(piece, self._lost) is None
        ]

    def _missing(self, number: int, batch: Batch, piece: str) -> str:
        holders = batch.pieces.holders(piece, self._lost)
        where = f"held by {', '.join(holders)}" if holders else "which no executor has written"
        return f"state {piece} of batch {number}, {where}"

    def _is_late(self, event: Event) -> bool:
        """The event is of a batch that is committed: a losing attempt, or a repeated ack."""
        return isinstance(event, PieceWritten | PieceDurable) and event.batch <= self.committed

    def _writer_lost(self, writer: str) -> None:
        """Record the loss of a writer. Writes of it that are announced later are lost as well. It
        may have held unannounced pieces of the batch that commits next, and of the one after."""
        self._lost.add(writer)
        for batch in (self.committed + 1, self.committed + 2):
            self._batch(batch).writer_lost_early = True

    def _batch(self, batch: int) -> Batch:
        return self._batches.setdefault(batch, Batch())

    def _last_held(self) -> int:
        return max(
            (number for number, batch in self._batches.items() if batch.required is not None),
            default=self.committed,
        )

    def _done(self, effect: Effect) -> None:
        if effect not in self._under_way:
            return
        self._under_way.discard(effect)
        match effect:
            case PutOffsets(batch):
                self.released = batch
            case PutMarker(batch):
                self.released = self.committed = batch
            case PutCommit(batch):
                self.committed = self.copied = batch
                del self._batches[batch]
            case CopyBatch(batch):
                self.copied = batch
                del self._batches[batch]
            case Delete() | Stop():
                pass

    def _next(self) -> Iterator[Effect]:
        number = self.committed + 1
        batch = self._batches.get(number)
        if batch is not None and self._commit_of(number) not in self._under_way:
            if batch.required is not None and (lost := self._lost_piece(batch, batch.required)):
                yield from self._stop(
                    f"an executor was lost with state of batch {number} that was not durable "
                    f"yet ({lost}); the query goes on from the last durable batch when restarted"
                )
                return
            yield from self._ask(self._step(number, batch))
        if self.with_log and self.copied < self.committed:
            yield from self._ask(CopyBatch(self.copied + 1))
        while self._deletes and self._deletes[0][0] <= self.copied:
            effect = Delete(self._deletes.popleft()[1])
            self._under_way.add(effect)
            yield effect

    def _step(self, number: int, batch: Batch) -> Effect | None:
        if self.released < number and not self._may_wait_for_marker(number, batch):
            return PutOffsets(number) if batch.offsets else None
        is_ready = batch.required is not None and self._is_durable(batch, batch.required)
        return self._commit_of(number) if is_ready else None

    def _may_wait_for_marker(self, number: int, batch: Batch) -> bool:
        """Offsets may wait for the marker. State that is not durable when Spark has ended the
        batch may be waiting for them: it is too large for the log."""
        if not (self.offsets_in_marker and batch.offsets) or PutOffsets(number) in self._under_way:
            return False
        return batch.required is None or self._is_durable(batch, batch.required)

    def _commit_of(self, number: int) -> PutMarker | PutCommit:
        return PutMarker(number) if self.with_log else PutCommit(number)

    def _is_durable(self, batch: Batch, required: frozenset[str]) -> bool:
        return all(batch.pieces.durable_write(piece, self._lost) for piece in required)

    def _lost_piece(self, batch: Batch, required: frozenset[str]) -> str | None:
        """A required piece that is lost, the first by name."""
        return min((piece for piece in required if self._is_piece_lost(batch, piece)), default=None)

    def _is_piece_lost(self, batch: Batch, piece: str) -> bool:
        """An unannounced piece counts as lost if a writer was: its announcement may be lost with
        it. A caller that announces a piece before its task ends is never stopped for that alone."""
        if batch.pieces.is_known(piece):
            return batch.pieces.is_lost(piece, self._lost)
        return batch.writer_lost_early

    def _ask(self, effect: Effect | None) -> Iterator[Effect]:
        if effect is not None and effect not in self._under_way:
            self._under_way.add(effect)
            yield effect

    def _stop(self, reason: str) -> list[Effect]:
        self.stopped = reason
        return [Stop(reason)]
