"""Barriers through chains of aligned queries, on a real store.

outer ─► a ─► mid ─► b ─► out            side ─► b as well, in some tests
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.log import barriers, invariants
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.barriers import chain_of, is_barrier_due, readable_end
from penstock.log.chains import Align, Member, StartBarrier
from penstock.log.contract import Mark
from penstock.log.reading.visible import latest
from penstock.log.store import repair
from penstock.log.upkeep import DeleteQuery, DeleteStream, Register, ResetQuery, TrimStream
from penstock.model.ids import BatchId, Instance, Lsn, QueryId, StreamName
from penstock.model.marker import Marker, Write
from penstock.settings.server import Settings
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, pending, rows, stamp, take

A, B = QueryId("a"), QueryId("b")
OUTER, SIDE, MID, OUT = (StreamName(name) for name in ("outer", "side", "mid", "out"))


class World:
    """Queries as plain as they can be: each reads as far as it may, and marks."""

    def __init__(self, log: EmbeddedLog) -> None:
        self.log = log
        self.batches: dict[QueryId, int] = {}

    def append(self, stream: StreamName) -> Lsn:
        return Lsn(self.log.run(rows(draft(0, 1), stream=stream)).position)

    def join(self, query: QueryId, output: StreamName, *inputs: StreamName) -> None:
        self.log.run(take(query))
        self.log.run(Align(query, Instance(1), (output,)))
        for stream in inputs:
            self.log.run(Register("query", query, stream, Lsn(0)))
        self.check()

    def mark(self, query: QueryId, output: StreamName | None, **read: Lsn) -> Lsn:
        """A batch that has read so far; without an output it writes nothing."""
        batch = self.batches.get(query, 0)
        self.batches[query] = batch + 1
        writes: tuple[Write, ...] = ()
        if output is not None:
            entries = self.log.run(
                pending(draft(0, batch), stream=output, by=stamp(query, batch=batch))
            )
            writes = (Write(output, 0, 0, entries),)
        marker = Marker(query, Instance(1), BatchId(batch), writes, "e30=", dict(read))
        lsn = Lsn(self.log.run(Mark(marker)))
        self.check()
        return lsn

    def start(self, query: QueryId) -> bool:
        started = bool(self.log.run(StartBarrier(query)))
        self.check()
        return started

    def check(self) -> None:
        invariants.check(self.log)

    def shown(self, stream: StreamName) -> Lsn:
        with self.log.reading() as view:
            record = view.stream(stream)
            assert record is not None
            return latest(view, record)

    def readable(self, query: QueryId, stream: StreamName) -> Lsn:
        with self.log.reading() as view:
            record = view.stream(stream)
            assert record is not None
            return readable_end(view, self.member(query), record)

    def member(self, query: QueryId) -> Member:
        with self.log.reading() as view:
            found = view.member(query)
        assert found is not None
        return found

    def waits_for(self, query: QueryId) -> list[QueryId] | None:
        """None: no barrier is in progress."""
        with self.log.reading() as view:
            chain = chain_of(view, query)
        assert chain is not None
        return chain.waits_for if chain.is_in_progress else None

    def is_due(self, query: QueryId) -> bool:
        with self.log.reading() as view:
            return is_barrier_due(view, query)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "data", Settings(), ManualClock())
    for name in (OUTER, SIDE, MID, OUT):
        log.run(make(name, substreams=1))
    yield log
    invariants.check(log)
    log.close()


@pytest.fixture
def world(log: EmbeddedLog) -> World:
    return World(log)


@pytest.fixture
def chained(world: World) -> World:
    world.join(A, MID, OUTER)
    world.join(B, OUT, MID)
    return world


def test_what_a_chain_writes_is_shown_at_once_when_its_barrier_is_complete(chained: World) -> None:
    until = chained.append(OUTER)
    assert chained.start(A)
    assert chained.waits_for(A) == [A]
    mid = chained.mark(A, MID, outer=until)
    assert chained.waits_for(A) == [B]
    assert (chained.shown(MID), chained.shown(OUT)) == (0, 0)
    assert chained.readable(B, MID) == mid
    out = chained.mark(B, OUT, mid=mid)
    assert (chained.shown(MID), chained.shown(OUT)) == (mid, out)
    assert chained.waits_for(A) is None


def test_only_one_barrier_is_in_progress(chained: World) -> None:
    first = chained.append(OUTER)
    assert chained.start(B)
    chained.append(OUTER)
    assert not chained.start(A)
    assert chained.readable(A, OUTER) == first


def test_a_query_that_the_barrier_has_passed_goes_on_and_those_after_it_do_not(
    chained: World,
) -> None:
    first = chained.append(OUTER)
    chained.start(A)
    barrier = chained.mark(A, MID, outer=first)
    second = chained.append(OUTER)
    assert chained.readable(A, OUTER) == second
    later = chained.mark(A, MID, outer=second)
    assert chained.readable(B, MID) == barrier
    out = chained.mark(B, OUT, mid=barrier)
    assert (chained.shown(MID), chained.shown(OUT)) == (barrier, out)
    assert chained.start(B)
    assert chained.readable(B, MID) == later
    chained.mark(B, None, mid=later)
    assert chained.shown(MID) == later


def test_several_batches_up_to_a_barrier_are_shown_together(chained: World) -> None:
    first, second = chained.append(OUTER), chained.append(OUTER)
    chained.start(A)
    one = chained.mark(A, MID, outer=first)
    assert chained.readable(B, MID) == one, "what comes before the barrier flows at once"
    chained.mark(B, OUT, mid=one)
    two = chained.mark(A, MID, outer=second)
    assert chained.shown(OUT) == 0
    out = chained.mark(B, OUT, mid=two)
    assert (chained.shown(MID), chained.shown(OUT)) == (two, out)


def test_an_input_that_the_barrier_has_reached_waits_for_the_others(world: World) -> None:
    world.join(A, MID, OUTER)
    world.join(B, OUT, MID, SIDE)
    outer, side = world.append(OUTER), world.append(SIDE)
    world.start(B)
    more = world.append(SIDE)
    assert world.readable(B, SIDE) == side < more
    world.mark(B, OUT, side=side)
    assert world.readable(B, SIDE) == side, "the barrier has not come on the other input"
    mid = world.mark(A, MID, outer=outer)
    assert world.readable(B, MID) == mid
    out = world.mark(B, OUT, mid=mid, side=side)
    assert world.shown(OUT) == out
    assert world.readable(B, SIDE) == more


def test_a_query_that_writes_nothing_lets_the_barrier_through_all_the_same(
    chained: World,
) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    chained.mark(A, None, outer=until)
    assert chained.waits_for(A) is None


def test_a_batch_without_new_input_is_shown_without_waiting_for_any(chained: World) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    mid = chained.mark(A, MID, outer=until)
    chained.mark(B, OUT, mid=mid)
    out = chained.mark(B, OUT, mid=mid)
    assert chained.shown(OUT) == out
    later = chained.mark(A, MID, outer=until)
    assert chained.waits_for(B) == [B]
    out = chained.mark(B, OUT, mid=later)
    assert (chained.shown(MID), chained.shown(OUT)) == (later, out)
    assert not chained.is_due(A)


def test_a_query_that_reads_nothing_of_the_log_shows_with_each_marker(world: World) -> None:
    world.join(A, MID)
    for _ in range(3):
        lsn = world.mark(A, MID)
        assert world.shown(MID) == lsn


def test_two_writers_of_a_stream_pass_before_the_barrier_is_on_it(world: World) -> None:
    world.join(A, MID, OUTER)
    world.join(B, MID, SIDE)
    outer, side = world.append(OUTER), world.append(SIDE)
    world.start(A)
    world.mark(A, MID, outer=outer)
    world.append(OUTER)
    assert world.readable(A, OUTER) == outer, "its rows would come before the barrier of the other"
    last = world.mark(B, MID, side=side)
    assert world.shown(MID) == last
    assert world.readable(A, OUTER) > outer


def test_a_loop_does_not_wait_for_itself(world: World) -> None:
    world.join(A, MID, OUTER, OUT)
    world.join(B, OUT, MID)
    until = world.append(OUTER)
    world.start(A)
    world.mark(A, MID, outer=until)
    assert world.waits_for(A) is None
    assert not world.is_due(A)


def test_what_was_visible_stays_so_and_what_others_append_waits_for_the_barrier(
    world: World,
) -> None:
    before = world.append(MID)
    world.join(A, MID, OUTER)
    assert world.shown(MID) == before
    after = world.append(MID)
    assert world.shown(MID) == before
    assert world.start(A)
    assert world.shown(MID) == after


def test_a_query_that_joins_while_a_barrier_is_in_progress_is_waited_for(world: World) -> None:
    world.join(A, MID, OUTER)
    until = world.append(OUTER)
    world.start(A)
    world.join(B, OUT, MID)
    mid = world.mark(A, MID, outer=until)
    assert world.shown(MID) == 0
    assert world.waits_for(A) == [B]
    out = world.mark(B, OUT, mid=mid)
    assert (world.shown(MID), world.shown(OUT)) == (mid, out)


def test_a_query_that_joins_past_the_barrier_takes_part_from_the_next_one_on(
    world: World,
) -> None:
    world.join(B, OUT, MID)
    world.append(MID)
    world.start(B)
    more = world.append(MID)
    world.join(A, MID, OUTER)
    assert world.shown(MID) == more, "what was visible stays so"
    assert world.waits_for(A) == [B]
    assert not world.member(A).awaits


def test_a_query_that_is_deleted_holds_nothing_back(chained: World) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    mid = chained.mark(A, MID, outer=until)
    chained.log.run(DeleteQuery(B))
    chained.check()
    assert chained.shown(MID) == mid
    chained.log.run(DeleteQuery(A))
    with chained.log.reading() as view:
        assert (list(view.members()), list(view.lines())) == ([], [])


@pytest.mark.parametrize("leaving", [ResetQuery(A, "again"), Align(A, Instance(1), ())])
def test_a_query_that_is_no_longer_aligned_shows_what_it_has_written(
    chained: World, leaving: ResetQuery | Align
) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    mid = chained.mark(A, MID, outer=until)
    assert chained.shown(MID) == 0
    chained.log.run(leaving)
    chained.check()
    assert chained.shown(MID) == mid
    chained.mark(B, OUT, mid=mid)
    assert chained.waits_for(B) is None


def test_a_new_run_of_a_member_goes_on_where_the_barrier_is(chained: World) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    mid = chained.mark(A, MID, outer=until)
    before = chained.member(B)
    chained.log.run(take(B, run="second"))
    chained.log.run(Align(B, Instance(2), (OUT,)))
    assert chained.member(B) == before
    assert chained.waits_for(B) == [B]
    assert chained.readable(B, MID) == mid
    with pytest.raises(PenstockError, match="was taken over"):
        chained.log.run(Align(B, Instance(1), ()))


def test_a_query_that_changes_its_protocol_is_aligned_from_its_last_marker_on(
    world: World,
) -> None:
    until = world.append(OUTER)
    world.log.run(take(A))
    world.log.run(Register("query", A, OUTER, Lsn(0)))
    world.log.run(Register("query", A, SIDE, Lsn(0)))
    visible = world.mark(A, MID, outer=until)
    world.log.run(Align(A, Instance(1), (MID,)))
    assert world.member(A).positions == {OUTER: until, SIDE: 0}
    assert world.shown(MID) == visible
    assert not world.is_due(A)


def test_nothing_is_trimmed_before_it_is_shown(chained: World) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    mid = chained.mark(A, MID, outer=until)
    assert chained.log.run(TrimStream(MID, mid, 0)).until == 0
    chained.mark(B, None, mid=mid)
    assert chained.log.run(TrimStream(MID, mid, 0)).until == mid
    assert chained.shown(MID) == mid


def test_a_stream_that_is_made_anew_shows_what_comes_after_a_barrier(chained: World) -> None:
    until = chained.append(OUTER)
    chained.start(A)
    chained.mark(B, OUT, mid=chained.mark(A, MID, outer=until))
    chained.log.run(DeleteStream(OUT, force=True))
    chained.check()
    assert not chained.is_due(A)
    chained.log.run(make(OUT, substreams=1))
    mid = chained.mark(A, MID, outer=until)
    assert chained.shown(OUT) < chained.mark(B, OUT, mid=mid) == chained.shown(OUT)


def test_more_queries_than_the_bound_are_refused_in_a_sentence(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(barriers, "MEMBERS_MAX", 1)
    world.join(A, MID, OUTER)
    world.log.run(Align(A, Instance(1), (MID, OUT)))
    world.log.run(take(B))
    with pytest.raises(PenstockError, match="1 aligned queries, which is the bound"):
        world.log.run(Align(B, Instance(1), (OUT,)))


def test_queries_of_another_protocol_are_shown_as_ever(chained: World) -> None:
    other, own = QueryId("c"), StreamName("own")
    chained.log.run(make(own))
    chained.log.run(take(other))
    chained.log.run(Register("query", other, OUTER, Lsn(0)))
    until = chained.append(OUTER)
    chained.start(A)
    assert chained.shown(own) == 0
    lsn = chained.mark(other, own, outer=until)
    assert chained.shown(own) == lsn
    assert chained.waits_for(A) == [A]
    with chained.log.reading() as view:
        assert view.member(other) is None


def test_a_log_that_is_opened_again_has_the_barrier_where_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "again"
    log = EmbeddedLog.open(folder, Settings(), ManualClock())
    for name in (OUTER, MID, OUT):
        log.run(make(name, substreams=1))
    world = World(log)
    world.join(A, MID, OUTER)
    world.join(B, OUT, MID)
    until = world.append(OUTER)
    world.start(A)
    mid = world.mark(A, MID, outer=until)
    log.close()
    world.log = EmbeddedLog.open(folder, Settings(), ManualClock())
    assert (world.shown(MID), world.waits_for(A)) == (0, [B])
    world.mark(B, OUT, mid=mid)
    assert world.shown(MID) == mid
    world.log.close()


def test_a_cut_of_the_damaged_end_leaves_chains_that_go_on(chained: World) -> None:
    first, second = chained.append(OUTER), chained.append(OUTER)
    chained.start(A)
    one = chained.mark(A, MID, outer=first)
    chained.mark(B, OUT, mid=one)
    two = chained.mark(A, MID, outer=second)
    chained.mark(B, OUT, mid=two)
    assert chained.shown(MID) == two
    log = chained.log
    repair.cut_from(log._env, log._tables, two, log.settings, log.clock)
    chained.check()
    assert chained.shown(MID) == one
    assert chained.member(A).positions == {OUTER: first}
    assert chained.waits_for(A) is None
    assert chained.is_due(A)
