"""Who writes in a simulated world of the log: producers, and the runs of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
import xxhash

from penstock.admission.cut import cut_batch
from penstock.errors import BadCall, Fenced, PenstockError
from penstock.log.operations import (
    AppendFiles,
    AppendPending,
    AppendRecord,
    AppendRows,
    Draft,
    FileDraft,
    Mark,
    Shape,
    TakeQuery,
)
from penstock.log.reading.visible import Range, check_position, entries_in, latest
from penstock.log.state import QueryRecord, StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BatchId, FilePath, Instance, Lsn, QueryId, StreamName, Substream
from penstock.model.marker import FileRef, Marker, Stamp, Write
from simulation.log.expected_entries import Truth
from simulation.log.expected_streams import place_of
from simulation.log.servers import Call, Client, Cluster, Server
from simulation.log.setup import INPUT, OUTPUT
from simulation.release.setup import Violation

FREE_TAG = "x/free"
GIVE_UP_STEPS = 500
"""Steps a producer repeats an append before it leaves it at that: no filter remembers for ever."""
QUERY = QueryId("q")


def draft(substream: int, value: str) -> Draft:
    payload = value.encode()
    return Draft(Substream(substream), payload, 1, xxhash.xxh3_64_intdigest(payload))


def routed(stream: StreamRecord, values: Sequence[str]) -> tuple[Draft, ...]:
    """Rows by their keys, which are the rows themselves."""
    return tuple(draft(place_of(value, stream.substreams), value) for value in values)


def shape_of(stream: StreamRecord) -> Shape:
    return Shape(stream.id, len(stream.versions), stream.substreams)


def stream_of(view: StoreView, name: str) -> StreamRecord:
    stream = view.stream(StreamName(name))
    if stream is None:
        raise Violation(f"the stream {name} is gone")
    return stream


def is_readable(view: StoreView, stream: StreamRecord, position: int, whose: str) -> bool:
    """Whether this server has come to the position; what is needed must not be trimmed."""
    try:
        check_position(view, stream, Lsn(position))
    except BadCall as refusal:
        if refusal.code == "trimmed":
            raise Violation(f"invariant 9: {whose}: {refusal}") from None
        return False
    return True


def unexpected(call: Call) -> Violation:
    refusal = call.outcome.refusal if call.outcome is not None else None
    return Violation(f"{type(call.operation).__name__} of {call.owner.name} was refused: {refusal}")


class Producer(Client):
    """Appends rows to the input, and records that commit themselves; both numbered."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(name)
        self.cluster = cluster
        self.sent = 0
        self.answers: list[str] = []  # values of rows that were answered
        self.free_answers: list[str] = []

    @property
    def is_done(self) -> bool:
        return self.sent >= self.cluster.setup.appends and not self.calls

    def act(self) -> None:
        cluster, rng = self.cluster, self.cluster.rng
        for call in list(self.calls):
            if cluster.step - call.opened_at > GIVE_UP_STEPS:
                self.calls.remove(call)
        cluster.retry(self)
        if self.calls or self.is_done:
            return
        self.sent += 1
        count = rng.choice((1, 1, 2, 3))
        self.append(tuple(f"{self.name}.{self.sent}.{n}" for n in range(count)), self.sent)
        record = f"{self.name}.{self.sent}".encode()
        cluster.call(
            self, AppendRecord((FREE_TAG,), record, producer=f"{self.name}.free", seq=self.sent)
        )

    def append(self, values: Sequence[str], sequence: int) -> None:
        stream = stream_of(self.cluster.any_up().replica.view(), INPUT)
        drafts = routed(stream, values)
        operation = AppendRows(stream.name, drafts, self.name, sequence, self.shape(stream))
        self.cluster.call(self, operation)

    def shape(self, stream: StreamRecord) -> Shape | None:
        return shape_of(stream)

    def answered(self, call: Call) -> None:
        refusal = call.outcome.refusal if call.outcome is not None else None
        if refusal is not None and refusal.code != "stream_altered":
            raise unexpected(call)
        if isinstance(call.operation, AppendRows):
            values = [draft.payload.decode() for draft in call.operation.drafts]
            if refusal is not None:
                assert call.operation.sequence is not None  # all of its own have one
                self.append(values, call.operation.sequence)
            else:
                self.answers += values
        elif isinstance(call.operation, AppendRecord):
            self.free_answers.append(call.operation.payload.decode())


@dataclass
class Attempt:
    """One attempt of a task of a batch: what it appends, and what it was answered."""

    partition: int
    number: int
    left: list[tuple[Draft, ...]]
    entries: list[Lsn] = field(default_factory=list)
    waits: bool = False


class Run(Client):
    """One start of the query: it copies the input to the output, batch by batch."""

    asks_early = False
    """Whether answers may come before the sync."""

    def __init__(self, cluster: Cluster, truth: Truth, number: int) -> None:
        super().__init__(f"run {number}")
        self.cluster, self.truth, self.number = cluster, truth, number
        self.phase = "take over"
        self.instance = Instance(0)
        self.batch = 0
        self.cut = (0, 0)
        self.position = 0
        self.file: Lsn | None = None
        self.attempts: list[Attempt] = []
        self.won: dict[int, Attempt] = {}
        self.tried = 0

    def act(self) -> None:
        """The next thing the driver does, if it need not wait."""
        self.cluster.retry(self)
        server = self.cluster.any_up()
        match self.phase:
            case "take over" if not self.calls:
                self.cluster.call(self, TakeQuery(QUERY, self.name, None))
            case "read":
                self.read(server)
            case "cut" if not self.calls:
                self.cut_batch(server)
            case "compute":
                self.compute(server)
            case "mark" if not self.calls:
                copied = BatchId(self.batch - 1) if self.batch else None
                self.cluster.call(self, Mark(self.marker(), copied))

    def read(self, server: Server) -> None:
        """The last marker, and the offsets recorded after it, from a server that knows this run."""
        view = server.replica.view()
        record = view.query(QUERY)
        if record is None or not self.knows(record):
            return
        if record.marker is not None:
            entry = view.entry(record.marker.lsn)
            assert entry is not None  # the record names it
            marker = msgspec.json.decode(entry.payload, type=Marker)
            self.batch, self.position = marker.batch + 1, marker.positions[INPUT]
        recorded = self.recorded(view)
        self.phase = "cut"
        if recorded is not None:
            self.cut, self.phase = recorded, "compute"

    def knows(self, record: QueryRecord) -> bool:
        return record.instance >= self.instance

    def recorded(self, view: StoreView) -> tuple[int, int] | None:
        offsets = view.first_offsets(QUERY, BatchId(self.batch))
        entry = view.entry(offsets[1]) if offsets is not None else None
        return msgspec.json.decode(entry.payload, type=tuple[int, int]) if entry else None

    def cut_batch(self, server: Server) -> None:
        view = server.replica.view()
        stream = stream_of(view, INPUT)
        if not self.may_read(view, stream, self.position):
            return
        commits = list(view.commits(stream, self.position + 1, latest(view, stream)))
        if not commits:
            return
        count = self.cluster.rng.randint(1, min(len(commits), self.cluster.setup.cut_max))
        until = cut_batch(view, stream, Lsn(self.position), commits[count - 1].lsn).end
        self.cut = (self.position, until)
        payload = msgspec.json.encode(self.cut)
        file = FileDraft(
            FilePath(f"offsets/{self.batch}"), payload, xxhash.xxh3_64_intdigest(payload)
        )
        offsets = AppendFiles(QUERY, self.instance, BatchId(self.batch), (file,))
        self.cluster.call(self, offsets, is_early=self.asks_early)

    def compute(self, server: Server) -> None:
        """Launch attempts, and let each append what it has left; the first to end wins."""
        setup, rng = self.cluster.setup, self.cluster.rng
        open_ = [p for p in range(setup.places) if p not in self.won]
        if not open_:
            self.phase = "mark"
            return
        partition = rng.choice(open_)
        running = [attempt for attempt in self.attempts if attempt.partition == partition]
        if len(running) < setup.attempts_max and (not running or rng.random() < 0.3):
            self.launch(server, partition)
            return
        for attempt in self.attempts:
            if not attempt.waits and attempt.left:
                self.append(attempt)
                return
        for attempt in running:
            if not attempt.waits and not attempt.left:
                self.win(attempt)
                return

    def launch(self, server: Server, partition: int) -> None:
        view = server.replica.view()
        stream = stream_of(view, INPUT)
        if latest(view, stream) < self.cut[1] or not self.may_read(view, stream, self.cut[0]):
            return
        rng = self.cluster.rng
        asked = Range(stream, Lsn(self.cut[0]), Lsn(self.cut[1]), Substream(partition))
        drafts = []
        places = stream_of(view, OUTPUT).substreams
        self.tried += 1
        for _, lsn in entries_in(view, asked):
            value = bytes(view.payload(lsn)).decode()
            place = rng.randrange(places)
            drafts.append(draft(place, f"{value}|{self.number}.{self.tried}"))
        split = rng.randint(0, len(drafts))
        left = [part for part in (tuple(drafts[:split]), tuple(drafts[split:])) if part]
        self.attempts.append(Attempt(partition, self.tried, left))

    def may_read(self, view: StoreView, stream: StreamRecord, position: int) -> bool:
        """What a run that was taken over has still to read may be trimmed: it is over."""
        if self.truth.instances.get(QUERY) != self.instance:
            record = view.query(QUERY)
            self.alive = record is None or record.instance <= self.instance
            return False
        return is_readable(view, stream, position, self.name)

    def append(self, attempt: Attempt) -> None:
        stamp = Stamp(QUERY, self.instance, BatchId(self.batch), attempt.partition, attempt.number)
        attempt.waits = True
        rows = AppendPending(StreamName(OUTPUT), stamp, attempt.left.pop(0))
        self.cluster.call(self, rows, is_early=self.asks_early)

    def win(self, attempt: Attempt) -> None:
        self.won[attempt.partition] = attempt
        key = (QUERY, self.instance, self.batch, attempt.partition)
        self.truth.winners[key] = tuple(attempt.entries)

    def writes(self) -> tuple[Write, ...]:
        return tuple(
            Write(StreamName(OUTPUT), partition, attempt.number, tuple(attempt.entries))
            for partition, attempt in sorted(self.won.items())
            if attempt.entries
        )

    def marker(self) -> Marker:
        path = FilePath(f"offsets/{self.batch}")
        files = (FileRef(path, self.file),) if self.file is not None else ()
        return Marker(
            QUERY,
            self.instance,
            BatchId(self.batch),
            self.writes(),
            commit="e30=",
            positions={INPUT: Lsn(self.cut[1])},
            files=files,
        )

    def answered(self, call: Call) -> None:
        outcome = call.outcome
        assert outcome is not None  # answered means that it has one
        if outcome.refusal is not None:
            self.refused(call, outcome.refusal)
            return
        match call.operation:
            case TakeQuery():
                self.instance, self.phase = outcome.answer.instance, "read"
            case AppendFiles():
                self.file, self.phase = outcome.answer[0], "compute"
            case AppendPending() as operation:
                for attempt in self.attempts:
                    if attempt.number == operation.stamp.attempt:
                        attempt.entries += outcome.answer
                        attempt.waits = False
            case Mark():
                self.batch, self.position = self.batch + 1, self.cut[1]
                self.file, self.attempts, self.won = None, [], {}
                self.phase = "cut"

    def refused(self, call: Call, refusal: PenstockError) -> None:
        if not isinstance(refusal, Fenced):
            raise unexpected(call)
        self.alive = False
