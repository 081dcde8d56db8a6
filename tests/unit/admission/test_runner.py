"""Admission on a log in a folder: who is refused, what is held for whom, and what ends a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.admission.cut import CutReason
from penstock.admission.hold import Held, Watch
from penstock.admission.question import Answer, Input, QueryRun, Question
from penstock.admission.runner import AdmissionRunner
from penstock.errors import BadCall, Fenced
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.operations import TakeQuery
from penstock.model.ids import Instance, Lsn, QueryId, StreamName
from penstock.testing.clock import ManualClock
from support.log.drafts import draft, make, rows

S, OTHER = StreamName("s"), StreamName("other")
RUN = QueryRun(QueryId("q"), Instance(1))
LONG_S = 600.0


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog.open(tmp_path / "log")
    log.run(make(S))
    log.run(make(OTHER))
    yield log
    log.close()


class NoticedHold(Held):
    """Says whether a question has come as far as to look and wait."""

    is_watched = False

    @contextmanager
    def watch(self, streams: Iterable[StreamName], wait_s: float) -> Iterator[Watch]:
        with super().watch(streams, wait_s) as watch:
            self.is_watched = True
            yield watch


class Stage:
    """A runner with what a server gives it, on the loop of one test."""

    def __init__(self, log: EmbeddedLog) -> None:
        self.log = log
        self.held = NoticedHold()
        self.runner = AdmissionRunner(log, self.held, ManualClock())
        log.on_visible(self.held.notify)

    async def append(self, stream: StreamName) -> None:
        await asyncio.wrap_future(self.log.submit(rows(draft(0, 1), stream=stream)))


def run(steps: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(steps, 60))


def asked(after: int = 0, **more: Any) -> Question:
    return Question(Input(S, Lsn(after)), **more)


async def waiting(stage: Stage, question: Question) -> asyncio.Task[Answer]:
    """A question that has looked, found nothing, and waits."""
    task = asyncio.ensure_future(stage.runner.ask(question))
    while not stage.held.is_watched:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    return task


def test_a_question_without_waiting_is_answered_at_once(log: EmbeddedLog) -> None:
    async def steps() -> None:
        answer = await Stage(log).runner.ask(asked())
        assert (answer.cut.end, answer.cut.reason) == (0, CutReason.NOTHING_NEW)
        assert (answer.latest, answer.substreams, answer.has_news) == (0, 2, False)

    run(steps())


@pytest.mark.parametrize("stream", [S, OTHER])
def test_something_new_in_any_input_ends_the_wait(log: EmbeddedLog, stream: StreamName) -> None:
    async def steps() -> None:
        stage = Stage(log)
        held = await waiting(stage, asked(others=(Input(OTHER, Lsn(0)),), wait_s=LONG_S))
        await stage.append(stream)
        answer = await held
        assert answer.has_news
        assert answer.cut.end == (1 if stream == S else 0)

    run(steps())


def test_a_server_that_stops_answers_what_it_holds(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        held = await waiting(stage, asked(wait_s=LONG_S))
        stage.held.release()
        assert not (await held).has_news

    run(steps())


def test_a_stream_is_held_for_a_run_that_asks_and_for_nobody_else(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        log.run(TakeQuery(RUN.query, "r1", None))
        await stage.append(S)
        await stage.runner.ask(asked())
        with log.reading() as view:
            assert list(view.consumers()) == []
        await stage.runner.ask(asked(1, run=RUN))
        await stage.runner.ask(asked(0, run=RUN))
        with log.reading() as view:
            kept = view.consumer("query", RUN.query, S)
            assert kept is not None
            assert kept.position == 1, "a run that is known is not registered again"
        # A server that starts anew knows no run: the position goes back to where this one is.
        await Stage(log).runner.ask(asked(0, run=RUN))
        with log.reading() as view:
            kept = view.consumer("query", RUN.query, S)
            assert kept is not None
            assert kept.position == 0

    run(steps())


def test_a_run_that_is_taken_over_while_it_waits_is_fenced(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        log.run(TakeQuery(RUN.query, "r1", None))
        held = await waiting(stage, asked(run=RUN, wait_s=LONG_S))
        log.run(TakeQuery(RUN.query, "r2", None))
        await stage.append(S)
        with pytest.raises(Fenced):
            await held

    run(steps())


def test_a_position_past_the_end_is_refused_of_any_input(log: EmbeddedLog) -> None:
    async def steps() -> None:
        stage = Stage(log)
        for question in (asked(7), asked(others=(Input(OTHER, Lsn(7)),))):
            with pytest.raises(BadCall) as refused:
                await stage.runner.ask(question)
            assert refused.value.code == "position_past_end"

    run(steps())
