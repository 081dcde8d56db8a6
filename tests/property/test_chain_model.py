"""Random chains in random orders: barriers end, and what is shown rests on what is shown."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import msgspec
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.admission.cut import Limits, cut_batch
from penstock.log import invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.barriers import chain_of, readable_end
from penstock.log.chains import Align, StartBarrier
from penstock.log.contract import Mark
from penstock.log.reading.visible import latest
from penstock.log.store.view import StoreView
from penstock.log.upkeep import Register
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName
from penstock.model.marker import Marker, Write
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, pending, rows, stamp, take

OUTER = [StreamName(f"outer{i}") for i in range(2)]
STEPS = 60


class Reading:
    """A query of the model: reads a random part of what it may, and marks."""

    def __init__(self, name: str, inputs: list[StreamName], output: StreamName) -> None:
        self.query = QueryId(name)
        self.inputs, self.output = inputs, output
        self.positions = dict.fromkeys(inputs, Lsn(0))
        self.batch = 0
        self.is_member = False

    def join(self, log: EmbeddedLog) -> None:
        log.run(take(self.query))
        log.run(Align(self.query, Instance(1), (self.output,)))
        for stream in self.inputs:
            log.run(Register("query", self.query, stream, Lsn(0)))
        self.is_member = True

    def step(self, log: EmbeddedLog, dice: random.Random, *, everything: bool = False) -> bool:
        """Whether it has read anything; now and then it marks though it has not."""
        log.run(StartBarrier(self.query))
        before = dict(self.positions)
        with log.reading() as view:
            member = view.member(self.query)
            assert member is not None
            for name, after in before.items():
                stream = view.stream(name)
                assert stream is not None
                until = readable_end(view, member, stream)
                most = None if everything or dice.random() < 0.5 else 1
                self.positions[name] = cut_batch(view, stream, after, until, Limits(most)).end
        if self.positions == before and (everything or dice.random() < 0.8):
            return False
        self.mark(log, everything or dice.random() < 0.7)
        return self.positions != before

    def mark(self, log: EmbeddedLog, has_rows: bool) -> None:
        writes: tuple[Write, ...] = ()
        if has_rows:
            by = stamp(self.query, batch=self.batch)
            entries = log.run(pending(draft(0, self.batch), stream=self.output, by=by))
            writes = (Write(self.output, 0, 0, entries),)
        batch = BatchId(self.batch)
        told = {str(name): position for name, position in self.positions.items()}
        log.run(Mark(Marker(self.query, Instance(1), batch, writes, "e30=", told)))
        self.batch += 1


def drawn(dice: random.Random) -> list[Reading]:
    """Two to five queries; each reads outer streams and outputs of those before it, and some write
    to the output of another."""
    made: list[Reading] = []
    for number in range(dice.randint(2, 5)):
        known = [*OUTER, *dict.fromkeys(each.output for each in made)]
        inputs = dice.sample(known, dice.randint(1, min(2, len(known))))
        shared = [each.output for each in made if each.output not in inputs]
        # Sharing the output of one that it reads from, however far above, would make a loop.
        safe = [s for s in shared if not any(s in upstream(made, i) for i in inputs)]
        output = dice.choice(safe) if safe and dice.random() < 0.2 else StreamName(f"s{number}")
        made.append(Reading(f"q{number}", inputs, output))
    return made


def upstream(made: list[Reading], stream: StreamName) -> set[StreamName]:
    found: set[StreamName] = set()
    left = [stream]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += [each for query in made if query.output == one for each in query.inputs]
    return found


def ends(view: StoreView, names: list[StreamName]) -> dict[StreamName, Lsn]:
    streams = [stream for stream in map(view.stream, names) if stream is not None]
    return {stream.name: latest(view, stream) for stream in streams}


def assert_rests_on_what_is_shown(view: StoreView, queries: list[Reading]) -> None:
    """Every marker that is shown has read only what is shown."""
    shown = ends(view, [each.output for each in queries])
    for query in queries:
        for lsn in view.tagged(f"t/{query.query}"):
            entry = view.entry(lsn)
            if entry is None or entry.head.kind != "marker" or lsn > shown[query.output]:
                continue
            marker = msgspec.json.decode(entry.payload, type=Marker)
            if not marker.writes:
                continue
            for name, position in marker.positions.items():
                if name in shown:
                    assert position <= shown[StreamName(name)], (query.query, lsn, name)


@settings(max_examples=30, deadline=None, phases=[Phase.generate])
@given(seed=st.integers(0, 1 << 32))
def test_barriers_end_and_what_is_shown_rests_on_what_is_shown(seed: int) -> None:
    dice = random.Random(seed)
    queries = drawn(dice)
    outputs = [each.output for each in queries]
    with tempfile.TemporaryDirectory() as folder:
        log = EmbeddedLog.open(Path(folder), Settings(), ManualClock())
        for name in dict.fromkeys([*OUTER, *outputs]):
            log.run(make(name, substreams=1))
        before: dict[StreamName, Lsn] = {}
        for _ in range(STEPS):
            if dice.random() < 0.3:
                log.run(rows(draft(0, 1), stream=dice.choice(OUTER)))
            else:
                query = dice.choice(queries)
                if query.is_member:
                    query.step(log, dice)
                else:
                    query.join(log)
            with log.reading() as view:
                assert_rests_on_what_is_shown(view, queries)
                now = ends(view, outputs)
            assert all(now[name] >= position for name, position in before.items())
            before = now
            invariants.check(log)
        for query in queries:
            if not query.is_member:
                query.join(log)
        for _ in range(STEPS):
            if not any(query.step(log, dice, everything=True) for query in queries):
                break
        with log.reading() as view:
            for query in queries:
                chain = chain_of(view, query.query)
                assert chain is not None
                assert not chain.is_in_progress
                stream = view.stream(query.output)
                assert stream is not None
                last = view.last_commit(stream)
                assert latest(view, stream) == (last.lsn if last is not None else 0)
        log.close()
