"""Streams and queries that change in a simulated world of the log, and who uses them meanwhile.

An owner alters the streams that everybody uses, deletes one and makes it again, and resets and
deletes the query that writes to it; a producer, that query and a reader live with it.
"""

from __future__ import annotations

import pyarrow as pa
import xxhash

from penstock.errors import PenstockError
from penstock.log.operations import (
    AlterStream,
    AppendFiles,
    AppendPending,
    AppendRows,
    CreateStream,
    DeleteQuery,
    DeleteStream,
    FileDraft,
    Mark,
    Operation,
    Register,
    ResetQuery,
    TakeQuery,
)
from penstock.log.reading.visible import (
    Range,
    check_position,
    current,
    earliest,
    entries_in,
    latest,
)
from penstock.log.state import Retention, StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, BatchId, FilePath, Instance, Lsn, QueryId, StreamName
from penstock.model.marker import FileRef, Marker, Stamp, Write
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import draft, routed, shape_of, unexpected
from simulation.log.readers import move
from simulation.log.servers import Call, Client, Cluster
from simulation.log.setup import INPUT, OUTPUT
from simulation.release.setup import Violation

SIDE = StreamName("side")
SIDE_QUERY = QueryId("again")
GONE = {"unknown_stream", "unknown_query", "unknown_consumer", "stream_altered", "trimmed"}
"""What someone may be told whose stream or query is deleted, or is another one meanwhile."""


def columns(count: int) -> bytes:
    schema = pa.schema([(f"c{each}", pa.string()) for each in range(count)])
    return bytes(schema.serialize())


class Owner(Client):
    """Changes something now and then, one thing at a time, and makes the stream it deleted."""

    def __init__(self, cluster: Cluster, truth: Truth) -> None:
        super().__init__("owner")
        self.cluster, self.truth = cluster, truth
        self.made = 0

    @property
    def is_done(self) -> bool:
        changes = self.cluster.setup.changes
        is_there = SIDE in self.truth.lives.current or not changes
        return self.made >= changes and is_there and not self.calls

    def act(self) -> None:
        self.cluster.retry(self)
        if self.calls or self.is_done:
            return
        self.made += 1
        self.cluster.call(self, self.change())

    def change(self) -> Operation:
        rng, setup = self.cluster.rng, self.cluster.setup
        view = self.cluster.any_up().replica.view()
        if view.stream(SIDE) is None or self.made > setup.changes:
            return CreateStream(SIDE, columns(1), 1, None)
        name = StreamName(rng.choice((INPUT, OUTPUT, SIDE)))
        stream = view.stream(name)
        versions = 1 if stream is None else len(stream.versions) + 1
        changes: tuple[Operation, ...] = (
            AlterStream(name, schema=columns(versions + 1)),
            AlterStream(StreamName(rng.choice((INPUT, OUTPUT))), substreams=setup.places),
            AlterStream(SIDE, retention=Retention(rng.choice((None, 500)))),
            DeleteStream(SIDE, force=rng.random() < 0.8),
            ResetQuery(SIDE_QUERY, f"reset {self.made}"),
            DeleteQuery(SIDE_QUERY),
        )
        return rng.choices(changes, (2, 2, 1, 3, 2, 1))[0]

    def answered(self, call: Call) -> None:
        """A copy that comes late may find the stream changed again: narrower columns then."""
        refusal = call.outcome.refusal if call.outcome is not None else None
        allowed = GONE | {"stream_in_use", "would_lose_data", "fenced"}
        if refusal is not None and refusal.code not in allowed:
            raise unexpected(call)


class SideProducer(Client):
    """Appends rows for the stream as it finds it; if that is another by then, prepares anew."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__("side producer")
        self.cluster = cluster
        self.sent = 0

    @property
    def is_done(self) -> bool:
        return self.sent >= self.cluster.setup.changes and not self.calls

    def act(self) -> None:
        self.cluster.retry(self)
        stream = self.cluster.any_up().replica.view().stream(SIDE)
        if self.calls or self.is_done or stream is None:
            return
        self.sent += 1
        drafts = routed(stream, (f"{stream.id}:{self.name}.{self.sent}",))
        operation = AppendRows(SIDE, drafts, self.name, self.sent, shape_of(stream))
        self.cluster.call(self, operation)

    def answered(self, call: Call) -> None:
        """Rows for a stream that is gone are gone with it."""
        refusal = call.outcome.refusal if call.outcome is not None else None
        if refusal is not None and refusal.code not in GONE:
            raise unexpected(call)


class SideRun(Client):
    """One start of a query that writes a row in every batch, and goes on after its last marker."""

    def __init__(self, cluster: Cluster, truth: Truth, number: int) -> None:
        super().__init__(f"side run {number}")
        self.cluster, self.truth, self.number = cluster, truth, number
        self.phase = "take over"
        self.instance = Instance(0)
        self.batch = self.attempt = 0
        self.file: Lsn | None = None
        self.entries: tuple[Lsn, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.truth.marked_by.get(SIDE_QUERY, 0) >= self.cluster.setup.changes

    def act(self) -> None:
        self.cluster.retry(self)
        stream = self.cluster.any_up().replica.view().stream(SIDE)
        if self.calls or self.is_done or stream is None:
            return
        match self.phase:
            case "take over":
                self.cluster.call(self, TakeQuery(SIDE_QUERY, self.name, None))
            case "record":
                file = FileDraft(self.path, b"[]", xxhash.xxh3_64_intdigest(b"[]"))
                batch = BatchId(self.batch)
                self.cluster.call(self, AppendFiles(SIDE_QUERY, self.instance, batch, (file,)))
            case "append":
                self.append(stream)
            case "mark":
                self.cluster.call(self, Mark(self.marker()))

    @property
    def path(self) -> FilePath:
        return FilePath(f"offsets/{self.batch}")

    def append(self, stream: StreamRecord) -> None:
        self.attempt += 1
        value = f"{stream.id}:{self.number}.{self.batch}.{self.attempt}"
        stamp = Stamp(SIDE_QUERY, self.instance, BatchId(self.batch), 0, self.attempt)
        place = self.cluster.rng.randrange(stream.substreams)
        self.cluster.call(
            self, AppendPending(SIDE, stamp, (draft(place, value),), shape_of(stream))
        )

    def marker(self) -> Marker:
        assert self.file is not None  # it was recorded before anything was appended
        batch = BatchId(self.batch)
        self.truth.winners[SIDE_QUERY, self.instance, batch, 0] = self.entries
        writes = (Write(SIDE, 0, self.attempt, self.entries),)
        files = (FileRef(self.path, self.file),)
        return Marker(SIDE_QUERY, self.instance, batch, writes, commit="e30=", files=files)

    def answered(self, call: Call) -> None:
        outcome = call.outcome
        assert outcome is not None  # answered means that it has one
        if outcome.refusal is not None:
            self.refused(call, outcome.refusal)
            return
        match call.operation:
            case TakeQuery():
                self.instance = outcome.answer.instance
                marker = outcome.answer.marker
                self.batch = 0 if marker is None else marker.batch + 1
                self.phase = "record"
            case AppendFiles():
                self.file, self.phase = outcome.answer[0], "append"
            case AppendPending():
                self.entries, self.phase = outcome.answer, "mark"
            case Mark():
                self.batch, self.phase = self.batch + 1, "record"

    def refused(self, call: Call, refusal: PenstockError) -> None:
        """Who lost the stream writes the batch again; who lost the query is over."""
        if refusal.code in ("fenced", "unknown_query"):
            self.alive = False
        elif refusal.code in ("unknown_stream", "stream_altered", "unknown_entries"):
            self.phase = "append"
        else:
            raise unexpected(call)


class SideReader(Client):
    """A registered consumer of the stream that is deleted: it starts anew with every other one."""

    def __init__(self, cluster: Cluster, truth: Truth) -> None:
        super().__init__("side reader")
        self.cluster, self.truth = cluster, truth
        self.stream: StreamRecord | None = None
        self.position = self.moved = BEFORE_ALL
        self.given: list[str] = []

    def act(self) -> None:
        self.cluster.retry(self)
        view = self.cluster.any_up().replica.view()
        side = view.stream(SIDE)
        if side is None or (self.stream is not None and side.id < self.stream.id):
            return
        if self.stream is None or side.id != self.stream.id:
            self.check_told(view)
            self.stream, self.position = side, earliest(view, side)
            self.moved, self.given = self.position, self.expected(self.position)
            self.cluster.call(self, Register("group", self.name, SIDE, self.position))
            return
        self.read(view, side)
        if not self.calls and self.position > self.moved:
            self.moved = self.position
            self.cluster.call(self, move(self.name, SIDE, self.position))

    def check_told(self, view: StoreView) -> None:
        """Who asks for the rest of a stream that is gone must hear so."""
        if self.stream is None:
            return
        try:
            current(view, self.stream)
        except PenstockError as refusal:
            if refusal.code == "unknown_stream":
                return
        raise Violation(f"a reader of {self.stream} is not told that another has its name")

    def read(self, view: StoreView, stream: StreamRecord) -> None:
        """Rows that retention has taken are skipped: nothing is held for one that is not yet
        registered; a server that is behind gives none."""
        self.stream = stream
        try:
            check_position(view, stream, self.position)
        except PenstockError as refusal:
            if refusal.code == "trimmed":
                self.position = earliest(view, stream)
                self.given = self.expected(self.position)
            return
        until = latest(view, stream)
        for _, lsn in entries_in(view, Range(stream, self.position, until)):
            self.given.append(bytes(view.payload(lsn)).decode())
        self.position = until
        expected = self.expected(until)
        if self.given != expected:
            raise Violation(
                f"invariant 8: a reader of the stream {SIDE} with id {stream.id}, at {until}, was "
                f"given {self.given}, and {expected} is committed"
            )

    def expected(self, until: Lsn) -> list[str]:
        assert self.stream is not None  # it is set before anything is read
        shown = [
            row
            for place in range(self.stream.substreams)
            for row in self.truth.shown(f"s/{SIDE}/{place}", raw=False, life=self.stream.id)
        ]
        return [row.value for row in sorted(shown) if row.by <= until]

    def answered(self, call: Call) -> None:
        refusal = call.outcome.refusal if call.outcome is not None else None
        if refusal is not None and refusal.code not in GONE:
            raise unexpected(call)

    def crash(self) -> None:
        """It registers again, wherever it was."""
        self.stream = None
        self.given = []

    def is_done(self) -> bool:
        """Every row of the stream that is there was read."""
        life = self.truth.lives.current.get(SIDE)
        if life is None or self.calls:
            return not self.calls
        return self.stream is not None and self.stream.id == life.id and self.position >= life.end
