"""A run of the simulated query around `Release`: recovery, then Spark's loop over micro-batches."""

from __future__ import annotations

from dataclasses import dataclass

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
from penstock.commit.release import Release
from simulation.release.early_places import Given
from simulation.release.executors import Attempt, Executor, Held, Query
from simulation.release.setup import Cut
from simulation.release.shared import Ground
from simulation.release.stores import Commit, Marker, Refused


@dataclass(eq=False)
class Asked:
    """An effect under way. `writes` is what the marker names, and `has_offsets` whether it carries
    the offsets, both taken when it was asked for."""

    effect: Effect
    writes: dict[str, tuple[str, int]]
    has_offsets: bool = False
    is_done: bool = False


class Run(Query):
    """One start of the query, with executors of its own. `step` does the driver's next act."""

    def __init__(self, ground: Ground, release: type[Release], executor: type[Executor]) -> None:
        self.ground, self.new_release, self.new_executor = ground, release, executor
        super().__init__(ground, self._release(0, recorded=False))
        self.phase = "take over"
        self.cuts: dict[int, Cut] = {}
        self.commits: dict[int, Commit] = {}
        self.outputs: dict[int, tuple[Attempt, ...]] = {}
        self.executors: dict[str, Executor] = {}
        self.dead: list[str] = []
        self.told_lost: set[str] = set()
        self.jobs: list[Asked] = []
        self.acked: dict[tuple[str, str], int] = {}
        self.purged: set[int] = set()
        self.beside_another = False
        self.waits: bool = False
        self.started = 0

    def step(self) -> bool:
        """False if the driver has to wait."""
        match self.phase:
            case "take over":
                self.instance = self.ground.log.take_over()
                self.phase = "bring up"
            case "bring up":
                if not self.bring_up():
                    self.phase = "read"
            case "read":
                self._read()
            case "cut":
                return self._cut()
            case "compute":
                return self._compute()
            case "show":
                return self._show()
            case _:
                self._commit()
        return True

    # Recovery, before Spark reads anything.

    def bring_up(self) -> bool:
        """Copy one file that the location lacks from the log; False when it lacks none."""
        location, log = self.ground.location, self.ground.log
        for batch in range(location.last_commit() + 1, log.last_marker() + 1):
            if self.copy_file(batch):
                return True
        first = log.last_marker() + 1
        if first in log.offsets and first not in location.offsets:
            location.create_offsets(first, log.offsets[first])
            return True
        return False

    def copy_file(self, batch: int) -> bool:
        """Of a marked batch: offsets, pieces, then the commit. False when all are there."""
        location, log = self.ground.location, self.ground.log
        marker = log.markers[batch]
        if batch in location.commits or batch < location.last_commit():
            return False
        if batch not in location.offsets:
            location.create_offsets(batch, marker.cut)
            return True
        for entry in marker.pieces:
            if entry[1] not in location.pieces and entry[1] not in location.snapshots:
                location.put_piece(log.pieces[entry])
                return True
        location.create_commit(marker.commit)
        return True

    def recorded(self, first: int) -> Cut | None:
        return self.ground.location.offsets.get(first)

    def _read(self) -> None:
        """Spark reads its logs; the first batch runs with its recorded offsets, if there are."""
        location = self.ground.location
        last = location.last_commit()
        if last >= 0:
            self._name(location.commits[last])
            self.cuts[last] = location.offsets[last]
        recorded = self.recorded(last + 1)
        if recorded is not None:
            self.cuts[last + 1] = recorded
        self.batch = last + 1
        self.release = self._release(self.batch, recorded=recorded is not None)
        self.ground.note("begins", (self.instance, self.batch, recorded))
        for number in range(self.ground.setup.executors):
            self.add_executor(f"host{number}")
        self.phase = "cut"

    def _release(self, first: int, *, recorded: bool) -> Release:
        setup = self.ground.setup
        return self.new_release(
            first,
            recorded=recorded,
            with_log=setup.with_log,
            behind=setup.behind,
            offsets_in_marker=setup.offsets_in_marker and setup.with_log and setup.sink == "log",
        )

    def add_executor(self, host: str) -> None:
        self.started += 1
        name = f"{self.instance}.{self.started}"
        self.executors[name] = self.new_executor(self, name, host)

    # The loop over batches.

    def _cut(self) -> bool:
        batch = self.batch
        if batch >= self.ground.setup.batches:
            return False
        if batch not in self.cuts:
            start = self.cuts[batch - 1].end if batch else 0
            self.cuts[batch] = Cut(start, start + self.ground.rng.randint(0, 4))
            self.tell(OffsetsWritten(batch))
            if self.ended is None and batch > self.ground.setup.retain:
                self.purge(batch - self.ground.setup.retain)
        self.phase = "compute"
        self.winners = {}
        self.ground.note("cut", (self.instance, batch, self.cuts[batch]))
        return True

    def purge(self, threshold: int) -> None:
        """Spark wants the files of earlier batches gone, durable or not yet."""
        old = {
            number for number in (*self.ground.location.offsets, *self.cuts) if number < threshold
        }
        for batch in sorted(old - self.purged):
            self.purged.add(batch)
            self.tell(DeleteAsked(f"offsets/{batch}"))
            self.tell(DeleteAsked(f"commits/{batch}"))

    def _compute(self) -> bool:
        if not self.release.may_compute(self.batch) or not self.executors:
            return False
        for partition in range(self.ground.setup.partitions):
            if partition not in self.winners and not self.running(partition):
                self.launch(partition)
                return True
        if len(self.winners) < self.ground.setup.partitions:
            return False
        self.phase = "show"
        return True

    def running(self, partition: int) -> list[Attempt]:
        return [
            attempt
            for attempt in self.attempts
            if attempt.batch == self.batch and attempt.partition == partition
        ]

    def launch(self, partition: int) -> None:
        self.started += 1
        executor = self.ground.rng.choice(list(self.executors.values()))
        previous = self.named.get((self.batch - 1, partition))
        attempt = Attempt(
            self.started, self.batch, partition, self.cuts[self.batch], previous, executor
        )
        self.attempts.append(attempt)
        self.ground.note("computing", (self, self.batch, partition, attempt.number, executor.name))

    def _show(self) -> bool:
        """The end of the job, where a file sink shows the batch, unless it has seen it."""
        batch, sink = self.batch, self.ground.sink
        self.outputs[batch] = tuple(self.winners[p] for p in sorted(self.winners))
        if self.ground.setup.sink == "file" and not sink.has(batch):
            for partition, winner in self.winners.items():
                sink.show(batch, partition, winner.output)
        self.phase = "commit"
        return True

    def _commit(self) -> None:
        commit = Commit(self.batch, tuple(output.piece for output in self.outputs[self.batch]))
        self.commits[self.batch] = commit
        self._name(commit)
        self.batch += 1
        self.phase = "cut"
        self.tell(CommitWritten(commit.batch, frozenset(commit.pieces)))

    def _name(self, commit: Commit) -> None:
        for partition, piece in enumerate(commit.pieces):
            self.named[commit.batch, partition] = piece

    def is_drained(self) -> bool:
        at_end = self.phase == "cut" and self.batch >= self.ground.setup.batches
        return at_end and self.release.is_idle()

    # What goes to the release, and what it asks for.

    def tell(self, event: Event) -> None:
        if isinstance(event, PieceWritten | PieceDurable):
            acks = self.heard if isinstance(event, PieceWritten) else self.acked
            key = (event.piece, event.writer)
            acks[key] = max(event.generation, acks.get(key, 0))
        if not isinstance(event, Done):
            self.ground.note("told", (self.instance, event))
        for effect in self.release.on(event):
            if isinstance(effect, Stop):
                self.end(effect.reason)
                return
            self.ground.note("asked", (self, effect))
            writes = (
                self.release.durable_writes(effect.batch) if isinstance(effect, PutMarker) else {}
            )
            has_offsets = isinstance(effect, PutMarker) and self.release.released < effect.batch
            self.jobs.append(Asked(effect, writes, has_offsets))

    def tell_loss(self, name: str) -> None:
        self.dead.remove(name)
        self.told_lost.add(name)
        self.attempts = [attempt for attempt in self.attempts if attempt.executor.name != name]
        self.tell(WriterLost(name))

    def to_copy(self) -> list[tuple[Executor, Held]]:
        return [
            (executor, held) for executor in self.executors.values() for held in executor.to_copy()
        ]

    def to_show(self) -> list[tuple[Executor, str]]:
        return [
            (executor, name) for executor in self.executors.values() for name in executor.to_show()
        ]

    def jobs_of(self, *, log: bool) -> list[Asked]:
        """What is under way in the log, or else in the location."""
        marks = self.ground.setup.with_log
        return [
            job
            for job in self.jobs
            if log == (marks and isinstance(job.effect, PutOffsets | PutMarker))
        ]

    def work(self, job: Asked) -> None:
        """Do the next part of an effect, or answer for one that is done."""
        if job.is_done:
            self.jobs.remove(job)
            self.tell(Done(job.effect))
            return
        try:
            job.is_done = self.act(job)
        except Refused as refused:
            self.jobs.remove(job)
            self.tell(Failed(job.effect, str(refused)))

    def act(self, job: Asked) -> bool:
        """True once the effect is done and durable."""
        location, log = self.ground.location, self.ground.log
        match job.effect:
            case PutOffsets(batch):
                if self.ground.setup.with_log:
                    log.put_offsets(self.instance, batch, self.cuts[batch])
                else:
                    location.create_offsets(batch, self.cuts[batch])
            case PutMarker(batch):
                log.append_marker(self.marker(batch, job.writes), has_offsets=job.has_offsets)
            case PutCommit(batch):
                location.create_commit(self.commits[batch])
            case CopyBatch(batch):
                if self.copy_file(batch):
                    return False
                log.trim(batch)
            case Delete(path):
                location.delete(path)
            case Stop():
                pass
        return True

    def marker(self, batch: int, writes: dict[str, tuple[str, int]]) -> Marker:
        commit = self.commits[batch]
        in_log = commit.pieces if self.ground.setup.pieces_in_log else ()
        pieces = tuple((self.instance, piece, *writes[piece]) for piece in in_log)
        rows = self.outputs[batch] if self.ground.setup.sink == "log" else ()
        outputs = tuple((self.instance, batch, row.partition, row.number) for row in rows)
        starts: dict[int, int] = {}
        for start, place in (self.given[e] for e in (*pieces, *outputs) if e in self.given):
            starts[start] = max(place, starts.get(start, 0))
        given = tuple(Given(*each) for each in sorted(starts.items()))
        return Marker(batch, self.instance, self.cuts[batch], pieces, outputs, commit, given)
