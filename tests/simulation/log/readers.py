"""Who reads in a simulated world of the log: by position, and raw; each told what it must see."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from penstock.log.contract import Entry
from penstock.log.operations import Move, MovePosition, Register, TrimTag
from penstock.log.raw.classify import (
    Bounds,
    Classifier,
    Committed,
    Recall,
    Saved,
    Verdict,
)
from penstock.log.raw.entry_facts import Fact, fact_of
from penstock.log.reading.visible import Range, entries_in, latest
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.ids import BEFORE_ALL, Lsn, StreamName, Substream
from simulation.log.expected_entries import Truth
from simulation.log.producers_and_queries import is_readable, stream_of, unexpected
from simulation.log.servers import Call, Client, Cluster
from simulation.release.setup import Violation

ENTRIES_AT_ONCE = 6


class PositionReader(Client):
    """A registered consumer of one substream: reads between positions, and compares with what must
    be there. Its position in the log follows now and then."""

    def __init__(self, cluster: Cluster, truth: Truth, stream: str, substream: int) -> None:
        super().__init__(f"reader of {stream}/{substream}")
        self.cluster, self.truth = cluster, truth
        self.stream, self.substream = stream, Substream(substream)
        self.tag = f"s/{stream}/{substream}"
        self.position = BEFORE_ALL
        self.moved = BEFORE_ALL
        self.given: list[str] = []
        cluster.agree(Register("group", self.name, StreamName(stream), BEFORE_ALL))

    def act(self) -> None:
        self.cluster.retry(self)
        view = self.cluster.any_up().replica.view()
        stream = stream_of(view, self.stream)
        if not self.is_readable(view, stream):
            return
        commits = list(view.commits(stream, self.position + 1, latest(view, stream)))
        if commits:
            self.read(view, stream, self.cluster.rng.choice(commits).lsn)
        if self.position > self.moved and may_move(self):
            self.moved = self.position
            self.cluster.call(self, move(self.name, self.stream, self.position))

    def is_readable(self, view: StoreView, stream: StreamRecord) -> bool:
        """A position before the last one it kept is found again in the log itself."""
        known = view.consumer("group", self.name, stream.name)
        if known is not None and known.position > self.position:
            self.position = known.position
            self.given = self.visible_values()
        return is_readable(view, stream, self.position, self.name)

    def visible_values(self) -> list[str]:
        return [row.value for row in self.truth.until(self.tag, self.position, raw=False)]

    def read(self, view: StoreView, stream: StreamRecord, until: Lsn) -> None:
        asked = Range(stream, self.position, until, self.substream)
        read = [bytes(view.payload(lsn)).decode() for _, lsn in entries_in(view, asked)]
        self.given += read
        self.position = until
        if self.given != self.visible_values():
            raise Violation(
                f"invariant 8: a reader of {self.tag} at {until} was given {self.given}, and "
                f"{self.visible_values()} is committed"
            )

    def answered(self, call: Call) -> None:
        check_moved(call)

    def crash(self) -> None:
        """Back to the position it kept in the log, once it has asked."""
        self.position = self.moved = BEFORE_ALL
        self.given = []

    def is_done(self) -> bool:
        shown = self.truth.shown(self.tag, raw=False)
        is_read = not shown or self.position >= shown[-1].by
        return is_read and self.moved == self.position and not self.calls


def move(name: str, stream: str, position: Lsn) -> MovePosition:
    return MovePosition("group", name, (Move(StreamName(stream), position),))


def may_move(reader: PositionReader | RawReader) -> bool:
    """Now and then only; a consumer need not say where it is after every row."""
    return not reader.calls and reader.cluster.rng.random() < 0.4


def check_moved(call: Call) -> None:
    """A repeat that comes after a later move may be below the trim point by then."""
    refusal = call.outcome.refusal if call.outcome is not None else None
    if refusal is not None and refusal.code != "trimmed":
        raise unexpected(call)


class RawReader(Client):
    """Reads every entry of some tags, and asks a classifier which of them count.

    Of a stream it is a registered consumer, at the last commit it was given; tags of records are
    its own, and it trims what it needs no more.
    """

    classifier: type[Classifier] = Classifier

    def __init__(self, cluster: Cluster, truth: Truth, *tags: str) -> None:
        super().__init__(f"raw reader of {', '.join(tags)}")
        self.cluster, self.truth, self.tags = cluster, truth, tags
        self.streams = sorted({tag.split("/")[1] for tag in tags if tag.startswith("s/")})
        for stream in self.streams:
            cluster.agree(Register("group", self.name, StreamName(stream), BEFORE_ALL))
        setup = cluster.setup
        self.bounds = Bounds(setup.unknown_max, 40, 50, setup.repeats_kept_ms)
        self.saved = Saved()
        self.moved = BEFORE_ALL
        self.given: list[tuple[Lsn, str]] = []
        self.read = 0  # the last entry it came to, before any restart
        self.start()

    def start(self) -> None:
        self.reader = self.classifier(self.bounds, self.saved)
        self.next = self.saved.first

    def crash(self) -> None:
        """What it was given is kept together with where it goes on, and nothing else."""
        self.start()

    def act(self) -> None:
        self.cluster.retry(self)
        view = self.cluster.any_up().replica.view()
        for stream in self.streams:
            if not is_readable(view, stream_of(view, stream), self.saved.position, self.name):
                return
        entries = self.entries(view, self.next, self.until(view))
        for _, entry in zip(range(ENTRIES_AT_ONCE), entries, strict=False):
            self.next = Lsn(entry.head.lsn + 1)
            self.read = max(self.read, entry.head.lsn)
            fact = fact_of(entry)
            if fact is not None:
                self.take(view, self.reader.feed(fact))
        self.saved = self.reader.saved()
        self.check()
        if self.saved.position > self.moved and may_move(self):
            self.move()

    def move(self) -> None:
        self.moved = self.saved.position
        for stream in self.streams:
            self.cluster.call(self, move(self.name, stream, self.saved.position))
        if not self.streams:
            for tag in self.tags:
                self.cluster.call(self, TrimTag(tag, Lsn(self.saved.first - 1)))

    def answered(self, call: Call) -> None:
        check_moved(call)

    def until(self, view: StoreView) -> Lsn:
        return view.settled(self.tags)

    def entries(self, view: StoreView, first: Lsn, last: Lsn) -> Iterator[Entry]:
        lsns = heapq.merge(*(view.tagged(tag, first) for tag in self.tags))
        for lsn in sorted({lsn for lsn in lsns if lsn <= last}):
            entry = view.entry(lsn)
            if entry is not None:
                yield entry

    def take(self, view: StoreView, verdicts: list[Verdict]) -> None:
        for verdict in verdicts:
            if isinstance(verdict, Recall):
                self.take(view, self.reader.recall(verdict, self.again(view, verdict)))
            elif isinstance(verdict, Committed):
                payload = verdict.payload
                if payload is None:
                    payload = bytes(view.payload(verdict.lsn))
                self.given.append((verdict.lsn, payload.decode()))

    def again(self, view: StoreView, asked: Recall) -> Iterator[Fact]:
        for entry in self.entries(view, asked.first, Lsn(asked.marks.lsn - 1)):
            fact = fact_of(entry)
            if fact is not None:
                yield fact

    def check(self) -> None:
        """Everything committed so far was given, once, in order; and little is held."""
        shown = heapq.merge(*(self.truth.until(tag, self.read, raw=True) for tag in self.tags))
        committed = [(row.lsn, row.value) for row in shown]
        if self.given != committed:
            raise Violation(
                f"invariant 8: a raw reader of {self.tags} at {self.read} was given "
                f"{self.given}, and {committed} is committed"
            )
        if self.reader.unknown > self.bounds.unknown_max:
            raise Violation(f"{self.reader.unknown} entries are held, over the bound")
        if self.reader.unknown_bytes > self.bounds.unknown_bytes_max:
            raise Violation(f"{self.reader.unknown_bytes} bytes are held, over the bound")

    def is_done(self) -> bool:
        return not self.calls and all(
            not (shown := self.truth.shown(tag, raw=True)) or self.read >= shown[-1].by
            for tag in self.tags
        )


Reader = PositionReader | RawReader
