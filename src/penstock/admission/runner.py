"""Admission of one source at a time, carried out: reads the log, writes to it, and waits."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from typing import Any

from penstock.admission.cut import cut_batch
from penstock.admission.hold import Held
from penstock.admission.question import Answer, Input, QueryRun, Question
from penstock.admission.read_positions import Asker, ReadPositions
from penstock.clock import Clock
from penstock.errors import PenstockError
from penstock.log.backends.local import LocalLog
from penstock.log.decide.fence import check_instance
from penstock.log.decide.need import need_stream
from penstock.log.operations import Move, MovePosition, Operation, Register
from penstock.log.reading.visible import check_position, latest
from penstock.log.state import ConsumerRecord
from penstock.log.store.view import StoreView

_LOG = logging.getLogger("penstock.admission")


class AdmissionRunner:
    """Answers the questions of all queries of one server. Used on its event loop only."""

    def __init__(self, log: LocalLog, held: Held, clock: Clock) -> None:
        self._log = log
        self._held = held
        self._positions = ReadPositions(clock)

    async def ask(self, question: Question) -> Answer:
        """Answer a question, in this order:

        1. hold the input for the run that asks, so that what it is told to read is there;
        2. look; while there is nothing new, wait and look again.
        """
        if question.run is not None:
            await self.hold_input(question.run, question.input, question.source)
        streams = [question.input.stream, *(other.stream for other in question.others)]
        with self._held.watch(streams, question.wait_s) as watch:
            while True:
                with self._log.reading() as view:
                    answer = look(view, question)
                if answer.has_news or not question.wait_s or not await watch.wait():
                    return answer

    async def hold_input(self, run: QueryRun, asked: Input, source: int) -> None:
        """Hold the stream for the query from the position it asks about, durably before it is told
        to read; later, only what has moved is kept, and nobody waits for that."""
        after = asked.after
        asker = Asker(run.query, run.instance, asked.stream)
        with self._log.reading() as view:
            check_instance(view, run.query, run.instance)
        if not self._positions.is_known(asker, source):
            register = Register("query", asker.query, asker.stream, after)
            consumer: ConsumerRecord = await self._run(register)
            if after < consumer.position:
                await self._run(MovePosition("query", asker.query, (Move(asker.stream, after),)))
            self._positions.registered(asker, after, source)
        elif (move := self._positions.asked(asker, after, source)) is not None:
            self._run_unawaited(move)

    async def _run(self, operation: Operation) -> Any:
        return await asyncio.wrap_future(self._log.submit(operation))

    def _run_unawaited(self, operation: Operation) -> None:
        """Carry out an operation that nobody waits for; if it is refused, the next one may not."""
        try:
            self._log.submit(operation).add_done_callback(_say_if_refused)
        except PenstockError as error:
            _LOG.info("not kept: %s", error)


def _say_if_refused(done: Future[Any]) -> None:
    error = done.exception()
    if error is not None:
        _LOG.info("not kept: %s", error)


def look(view: StoreView, question: Question) -> Answer:
    """The answer that one state of the log gives; refuses who was taken over, and positions that
    cannot be read."""
    if question.run is not None:
        check_instance(view, question.run.query, question.run.instance)
    stream, after = need_stream(view, question.input.stream), question.input.after
    check_position(view, stream, after)
    if question.limits.until is not None:
        check_position(view, stream, question.limits.until)
    visible_end = latest(view, stream)
    cut = cut_batch(view, stream, after, visible_end, question.limits)
    has_news = cut.end > after
    for other in question.others:
        record = need_stream(view, other.stream)
        check_position(view, record, other.after)
        has_news = has_news or latest(view, record) > other.after
    return Answer(cut, visible_end, stream.substreams, has_news)
