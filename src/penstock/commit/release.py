"""The release of a query: what may become durable next. Pure; its twin is `Release.scala`.

Per batch the order is

    offsets/i  ->  state of i, every piece  ->  marker i  ->  commits/i  ->  offsets/i+1  -> ...

Without a log there is no marker, and durable means: in the checkpoint location. With a log, offsets
and pieces are durable there, the marker carries `commits/i` and commits the batch, and the batch is
copied to the location behind it, in order. Effects of one kind are asked for one at a time; the
caller does them and answers with `Done` or `Failed`.
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
)


@dataclass
class Write:
    """What one writer was told to have written of one piece, and how much of that is durable.

    Both only grow, so that it does not matter in which order acks come, nor how often.
    """

    told: int = 0
    durable: int = 0

    def is_durable(self) -> bool:
        """The newest write is; a later write of a piece supersedes the one before it."""
        return self.durable >= self.told


@dataclass
class Pieces:
    """Who holds which write of which piece of one batch. Generations count from 1."""

    writes: dict[str, dict[str, Write]] = field(default_factory=dict)

    def written(self, piece: str, writer: str, generation: int) -> None:
        write = self._write(piece, writer)
        write.told = max(write.told, generation)

    def made_durable(self, piece: str, writer: str, generation: int) -> None:
        write = self._write(piece, writer)
        write.told = max(write.told, generation)
        write.durable = max(write.durable, generation)

    def is_known(self, piece: str) -> bool:
        return piece in self.writes

    def durable_write(self, piece: str, lost: set[str]) -> tuple[str, int] | None:
        """The writer and generation that count: durable, while nobody writes the piece anew."""
        writes = self.writes.get(piece, {})
        if any(not write.is_durable() and writer not in lost for writer, write in writes.items()):
            return None
        return min(
            ((writer, write.durable) for writer, write in writes.items() if write.is_durable()),
            default=None,
        )

    def is_lost(self, piece: str, lost: set[str]) -> bool:
        """It was written, and no one can make it durable any more."""
        writes = self.writes.get(piece, {})
        return bool(writes) and all(
            not write.is_durable() and writer in lost for writer, write in writes.items()
        )

    def is_any_held(self, lost: set[str]) -> bool:
        """Some piece is written, but not durable yet."""
        return any(
            not self.is_lost(piece, lost) and self.durable_write(piece, lost) is None
            for piece in self.writes
        )

    def is_any_lost(self, lost: set[str]) -> bool:
        return any(self.is_lost(piece, lost) for piece in self.writes)

    def _write(self, piece: str, writer: str) -> Write:
        return self.writes.setdefault(piece, {}).setdefault(writer, Write())


@dataclass
class Batch:
    offsets: bool = False
    required: frozenset[str] | None = None
    pieces: Pieces = field(default_factory=Pieces)
    bereft: bool = False  # a writer was lost while it could have held a piece of this batch


class Release:
    """One run of one query. Batches below `first` are committed and in the location.

    `recorded`: the offsets of batch `first` were durable before this run began.
    """

    def __init__(self, first: int, *, recorded: bool, with_log: bool, behind: int = 8) -> None:
        self.with_log = with_log
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
        """At most one batch computes while the one before it is being made durable; and the
        location is never more than `behind` batches behind the log."""
        return self.committed >= batch - 2 and self.copied >= batch - 2 - self.behind

    def may_make_durable(self, batch: int, *, is_large: bool) -> bool:
        """State of the batch may leave its writer. In the log it is nobody's until a marker names
        it; in the location, where it goes if it is too large for the log, it is there for every
        reader."""
        return (self.with_log and not is_large) or batch <= self.released

    def may_show_snapshot(self, batch: int, *, is_required: bool) -> bool:
        """A snapshot may enter the location. One that its batch waits for, and is not recovered
        without, is a piece like any other. All others come after their batch, because what is older
        than a snapshot is deleted, and the location must stay one that can be continued from."""
        return batch <= (self.released if is_required else self.copied)

    def is_idle(self) -> bool:
        """Everything Spark has handed over is committed, and in the location."""
        return not self._under_way and not self._deletes and self._last_held() <= self.copied

    def is_lost(self, batch: int, piece: str) -> bool:
        """Whoever waits for the piece waits in vain."""
        return batch in self._batches and self._batches[batch].pieces.is_lost(piece, self._lost)

    def is_held(self, batch: int) -> bool:
        """Something of the batch that was written is not durable yet: a sink that would skip the
        batch when it is run again must not see the end of it."""
        return batch in self._batches and self._batches[batch].pieces.is_any_held(self._lost)

    def has_lost(self, batch: int) -> bool:
        """Something of the batch that was written never will be durable."""
        return batch in self._batches and self._batches[batch].pieces.is_any_lost(self._lost)

    def durable_writes(self, batch: int) -> dict[str, tuple[str, int]]:
        """The write of each required piece that counts, as writer and generation.

        For the marker to name. Ask when `PutMarker` is asked for: a late attempt may write a piece
        anew while the marker is on its way, and then that piece is missing here.
        """
        held = self._batches[batch]
        found = {
            piece: held.pieces.durable_write(piece, self._lost) for piece in held.required or ()
        }
        return {piece: write for piece, write in found.items() if write is not None}

    def on(self, event: Event) -> list[Effect]:
        """Take in what happened; what is to be done now."""
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

    def _is_late(self, event: Event) -> bool:
        """Of a batch that is committed: a losing attempt, or an ack told twice."""
        return isinstance(event, PieceWritten | PieceDurable) and event.batch <= self.committed

    def _writer_lost(self, writer: str) -> None:
        """A write of it that is told later is lost as well. It may have had pieces nobody was told
        of: of the batch that is next to commit, and of the one computing behind it."""
        self._lost.add(writer)
        for batch in (self.committed + 1, self.committed + 2):
            self._batch(batch).bereft = True

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
                self.committed = batch
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
            if batch.required is not None and (gone := self._gone(batch, batch.required)):
                yield from self._stop(
                    f"an executor was lost with state of batch {number} that was not durable "
                    f"yet ({gone}); the query goes on from the last durable batch when restarted"
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
        if self.released < number:
            return PutOffsets(number) if batch.offsets else None
        if batch.required is None or not self._is_durable(batch, batch.required):
            return None
        return self._commit_of(number)

    def _commit_of(self, number: int) -> PutMarker | PutCommit:
        return PutMarker(number) if self.with_log else PutCommit(number)

    def _is_durable(self, batch: Batch, required: frozenset[str]) -> bool:
        return all(batch.pieces.durable_write(piece, self._lost) for piece in required)

    def _gone(self, batch: Batch, required: frozenset[str]) -> str | None:
        """A piece that was lost. One that nobody was told of counts as lost if a writer was: it
        may have taken the word of it along. A caller that tells of a piece before its task ends
        never sees a batch stopped for that alone."""
        return min((piece for piece in required if self._is_gone(batch, piece)), default=None)

    def _is_gone(self, batch: Batch, piece: str) -> bool:
        if batch.pieces.is_known(piece):
            return batch.pieces.is_lost(piece, self._lost)
        return batch.bereft

    def _ask(self, effect: Effect | None) -> Iterator[Effect]:
        if effect is not None and effect not in self._under_way:
            self._under_way.add(effect)
            yield effect

    def _stop(self, reason: str) -> list[Effect]:
        self.stopped = reason
        return [Stop(reason)]
