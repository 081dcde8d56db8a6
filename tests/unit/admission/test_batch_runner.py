"""Admission with deadlines on a log in a folder: what holds a question, and what ends the hold."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.admission.batch_question import LogInput, OutsideInput
from penstock.admission.cut import Limits
from penstock.admission.offer import CutsBy, Waiting
from penstock.admission.question import Input, QueryRun
from penstock.admission.terms import CountedFrom, PolicyName, Terms
from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall, Fenced
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import Mark, TakeQuery
from penstock.model.ids import Instance, Lsn, QueryId
from penstock.model.requests import BatchReport
from penstock.testing.clock import ManualClock
from support.admission.stage import OUT, S, Stage, asked
from support.log.drafts import draft, make, mark, pending, stamp

ASAP = Terms(policy=PolicyName.ASAP)
HOUR_MS, MINUTE_MS, NEAR_MS = 3_600_000, 60_000, 100
HOUR = Terms(float(HOUR_MS), PolicyName.DEADLINE)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "log")
    log.run(make(S))
    log.run(make(OUT))
    yield log
    log.close()


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(steps, 60))


def marked(entry: Lsn, end: Lsn) -> Mark:
    """The marker of a batch that read the input up to `end`."""
    marker = mark(entry, stream=OUT).marker
    return Mark(msgspec.structs.replace(marker, positions={str(S): end}))


def test_a_question_is_held_until_data_come(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        task = await stage.waiting(asked(ASAP))
        end = await stage.append(1, 2)
        answer = await task
        assert (answer.cut, answer.inputs[0].end, answer.inputs[0].latest) == (1, end, end)

    run(steps())


def test_the_first_question_after_a_batch_is_answered_at_once(log: EmbeddedLog) -> None:
    async def steps() -> None:
        answer = await Stage(log).runner.ask(asked(ASAP, is_first=True))
        assert (answer.cut, answer.inputs[0].end) == (None, 0)

    run(steps())


def test_a_question_is_answered_at_the_last_moment_that_holds(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        terms = Terms(400.0, PolicyName.DEADLINE)
        stage.experienced(terms)
        await stage.append(1, 2, 3)
        began = SYSTEM_CLOCK.monotonic_s()
        answer = await stage.runner.ask(asked(terms))
        waited_s = SYSTEM_CLOCK.monotonic_s() - began
        assert answer.cut == 1
        assert answer.left_ms is not None
        assert answer.predicted_ms == pytest.approx(100.0, abs=2)
        # 400 - 105 ms after the rows arrived, and within 10 ms of that moment if nobody disturbs.
        assert 0.2 < waited_s < 5
        assert answer.left_ms < 110

    run(steps())


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS], ids=["ahead", "back"])
def test_a_jump_of_the_wall_clock_moves_no_moment_that_a_question_is_held_for(
    tmp_path: Path, jump_ms: int
) -> None:
    """The clock jumps when the rows have waited for a minute; all of the log sees it, too.

    rows ── 1 minute ── jump ──────── held ────────┤ moment: an hour, less what a batch costs
    """

    async def steps() -> None:
        stage = Stage(log, clock)
        stage.experienced(HOUR)
        await stage.append(1)
        arrived_ms = stage.runner.now_ms()
        task = await stage.waiting(asked(HOUR, wait_s=3 * HOUR_MS / 1000))
        book = stage.runner.books.named("q").book
        assert book.planned is not None
        moment_ms = book.planned.until_ms
        clock.turn(MINUTE_MS)
        clock.wall_error_ms = jump_ms
        await stage.decided_again("q")
        assert book.planned.until_ms == pytest.approx(moment_ms, abs=0.001)
        clock.turn(moment_ms - NEAR_MS - stage.runner.now_ms())
        await stage.decided_again("q")
        assert not task.done()
        clock.turn(NEAR_MS)
        await stage.decided_again("q")
        answer = await task
        assert answer.cut == 1
        assert answer.left_ms == pytest.approx(HOUR_MS - (moment_ms - arrived_ms), abs=1)

    clock = ManualClock(10 * HOUR_MS)
    with contextlib.closing(EmbeddedLog.open(tmp_path / "by-hand", clock=clock)) as log:
        log.run(make(S))
        run(steps())


def test_data_that_must_not_be_withheld_are_answered_at_once(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        stage.experienced(HOUR)
        end = await stage.append(1)
        answer = await stage.runner.ask(asked(HOUR, must_cut=True))
        assert answer.inputs[0].end == end
        assert "must not be withheld" in answer.reason

    run(steps())


def test_an_operator_s_deadline_ends_a_hold(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        stage.experienced(HOUR)
        await stage.append(1)
        task = await stage.waiting(asked(HOUR))
        stage.runner.set_deadline(stage.runner.books.named("q"), 110.0)
        answer = await task
        assert (answer.cut, answer.deadline_ms) == (1, 110.0)

    run(steps())


def test_a_deadline_below_the_floor_is_logged_once_and_another_deadline_again(
    log: EmbeddedLog, caplog: pytest.LogCaptureFixture
) -> None:
    async def steps() -> None:
        stage = Stage(log)
        tight = Terms(50.0, PolicyName.DEADLINE)
        stage.experienced(tight)
        for number, operator_ms in enumerate((None, None, 40.0, 40.0)):
            stage.runner.set_deadline(stage.runner.books.named("q"), operator_ms)
            await stage.append(number)
            answer = await stage.runner.ask(asked(tight, after=number))
            assert answer.cut is not None
            assert "below the floor" in answer.reason

    with caplog.at_level(logging.WARNING, "penstock.admission"):
        run(steps())
    name = "penstock.admission"
    first, second = (each.getMessage() for each in caplog.records if each.name == name)
    for line, deadline_ms in ((first, 50), (second, 40)):
        assert line.startswith("query q: ")
        assert f"the deadline of {deadline_ms} ms is below the floor: the smallest batch" in line
        assert "100 ms" in line


def test_another_query_that_cuts_unplanned_has_a_held_one_decided_again(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        stage.experienced(HOUR)
        await stage.append(1)
        task = await stage.waiting(asked(HOUR))
        before = stage.runner.books.named("q").book.totals.decisions
        tight = Terms(1.0, PolicyName.DEADLINE)
        answer = await stage.runner.ask(asked(tight, query="tight"))
        assert answer.cut == 1
        while stage.runner.books.named("q").book.totals.decisions == before:
            await asyncio.sleep(0)
        stage.held.release()
        assert (await task).cut is None

    run(steps())


def test_a_stopping_server_answers_every_held_question(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        outside = (OutsideInput(Waiting(0, rows=0)),)
        tasks = [
            await stage.waiting(asked(ASAP)),
            await stage.waiting(asked(ASAP, inputs=outside, query="outside")),
        ]
        stage.held.release()
        assert [(await task).cut for task in tasks] == [None, None]

    run(steps())


def test_the_time_of_a_batch_runs_from_its_cut_to_its_marker(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        log.run(TakeQuery(QueryId("q"), "r1", None))
        own = QueryRun(QueryId("q"), Instance(1))
        end = await stage.append(1, 2)
        answer = await stage.runner.ask(asked(ASAP, run=own))
        assert answer.cut is not None
        (entry,) = await asyncio.wrap_future(
            log.submit(pending(draft(0, 1), stream=OUT, by=stamp()))
        )
        await asyncio.sleep(0.05)
        await asyncio.wrap_future(log.submit(marked(entry, end)))
        await stage.runner.ask(
            asked(
                ASAP, end, run=own, is_first=True, reports=(BatchReport(answer.cut, core_ms=3.0),)
            )
        )
        while not (costs := stage.runner.books.named("q").book.costs):
            await asyncio.sleep(0)
        assert costs[-1].rows == 2
        assert 45 < costs[-1].visible_ms < 10_000
        assert stage.runner.books.named("q").writes == {"out"}

    run(steps())


def test_a_batch_is_cut_within_its_size_at_commits_and_in_every_source(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        terms = Terms(1.0, PolicyName.DEADLINE)
        ends = [await stage.append(*range(500)) for _ in range(4)]
        waiting = Waiting(1, rows=2_000, files=8, oldest_age_ms=9.0, cuts_by=CutsBy.FILES)
        whole = Waiting(2, rows=0, cuts_by=CutsBy.NOTHING)
        inputs = (LogInput(0, Input(S, Lsn(0))), OutsideInput(waiting), OutsideInput(whole))
        answer = await stage.runner.ask(asked(terms, inputs=inputs))
        # 4,000 rows wait and the first batch has 1,000: a quarter of each.
        assert answer.inputs[0].end == ends[0]
        assert answer.inputs[1].take == 2
        assert answer.inputs[2].take == "nothing"

    run(steps())


def test_a_source_that_counts_no_rows_is_bounded_where_it_takes_a_limit_of_them(
    log: EmbeddedLog,
) -> None:
    async def steps() -> None:
        stage = Stage(log)

        async def taken(terms: Terms, **more: Any) -> object:
            waiting = Waiting(0, oldest_age_ms=9.0, cuts_by=CutsBy.ROWS)
            answer = await stage.runner.ask(asked(terms, inputs=(OutsideInput(waiting),), **more))
            return answer.inputs[0].take

        ours = Terms(1.0, PolicyName.DEADLINE)
        assert await taken(ours) == 1_000
        report = BatchReport(1, rows=3_000, core_ms=5.0, visible_ms=90.0)
        assert await taken(ours, reports=(report,)) == 6_000
        assert await taken(ours, must_cut=True) == "all"
        assert await taken(ASAP) == "all"

    run(steps())


def test_a_batch_from_outside_the_log_is_learned_from_as_it_was_read(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        # What is offered is an estimate: a file is read whole, and a source may give less.
        waiting = Waiting(0, rows=1_000, bytes=9_000, oldest_age_ms=9.0, cuts_by=CutsBy.BYTES)
        inputs = (OutsideInput(waiting),)
        for read in (BatchReport(0, rows=200, bytes=4_000), BatchReport(0, rows=None)):
            answer = await stage.runner.ask(asked(ASAP, inputs=inputs))
            assert answer.cut is not None
            report = msgspec.structs.replace(read, cut=answer.cut, core_ms=3.0, visible_ms=5.0)
            await stage.runner.ask(asked(ASAP, inputs=inputs, reports=(report,), is_first=True))
        costs = stage.runner.books.named("q").book.costs
        assert [(cost.rows, cost.bytes) for cost in costs] == [(200, 4_000), (1_000, 9_000)]

    run(steps())


def test_limits_of_the_user_stay(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        ends = [await stage.append(1, 2, 3) for _ in range(4)]
        limited = (LogInput(0, Input(S, Lsn(0)), 0, Limits(rows_max=7)),)
        answer = await stage.runner.ask(asked(ASAP, inputs=limited))
        assert answer.inputs[0].end == ends[1]
        until = (LogInput(0, Input(S, Lsn(0)), 0, Limits(until=ends[2])),)
        answer = await stage.runner.ask(asked(ASAP, inputs=until))
        assert answer.inputs[0].end == ends[2]

    run(steps())


def test_an_origin_makes_rows_older_than_their_arrival(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        log.run(TakeQuery(QueryId("q"), "r1", None))
        end = await stage.append(1)
        (entry,) = await asyncio.wrap_future(
            log.submit(pending(draft(0, 1), stream=OUT, by=stamp()))
        )
        await asyncio.sleep(0.2)
        await asyncio.wrap_future(log.submit(marked(entry, end)))
        lefts = []
        for counted_from in (CountedFrom.ARRIVAL, CountedFrom.ORIGIN):
            terms = Terms(10_000.0, PolicyName.ASAP, origin=counted_from)
            inputs = (LogInput(0, Input(OUT, Lsn(0))),)
            answer = await stage.runner.ask(asked(terms, inputs=inputs, query="second"))
            lefts.append(answer.left_ms or 0.0)
        assert lefts[0] - lefts[1] > 150

    run(steps())


def test_who_was_taken_over_is_refused_and_so_are_terms_that_cannot_be_kept(
    log: EmbeddedLog,
) -> None:
    async def steps() -> None:
        stage = Stage(log)
        log.run(TakeQuery(QueryId("q"), "r1", None))
        log.run(TakeQuery(QueryId("q"), "r2", None))
        with pytest.raises(Fenced):
            await stage.runner.ask(asked(ASAP, run=QueryRun(QueryId("q"), Instance(1))))
        with pytest.raises(BadCall, match="needs the slide of a window"):
            await stage.runner.ask(asked(Terms(policy=PolicyName.SLIDE)))

    run(steps())
