"""Admission with deadlines on a log, and the questions that a query asks of it."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.admission.batch_question import BatchAnswer, BatchQuestion, LogInput
from penstock.admission.batch_runner import BatchAdmissionRunner
from penstock.admission.hold import Held
from penstock.admission.question import Input
from penstock.admission.runner import AdmissionRunner
from penstock.admission.terms import Terms
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.model.ids import Lsn, StreamName
from support.admission.books import learn_line
from support.log.drafts import draft, rows

S, OUT = StreamName("s"), StreamName("out")
LONG_S = 60.0


class Stage:
    """A runner with what a server gives it, on the loop of one test."""

    def __init__(self, log: EmbeddedLog, clock: Clock = SYSTEM_CLOCK) -> None:
        self.log = log
        self.held = Held()
        simple = AdmissionRunner(log, self.held, clock)
        self.runner = BatchAdmissionRunner(log, self.held, clock, 1, simple.hold_input)
        log.on_visible(self.held.notify)

    async def append(self, *values: int, stream: StreamName = S) -> Lsn:
        submitted = self.log.submit(rows(draft(0, *values), stream=stream))
        return Lsn((await asyncio.wrap_future(submitted)).position)

    def experienced(self, terms: Terms) -> None:
        """Have the query's batches cost 100 ms and a hundredth for each row."""
        kept = self.runner._heard(asked(terms))
        learn_line(kept.book)

    async def waiting(self, question: BatchQuestion) -> asyncio.Task[BatchAnswer]:
        task = asyncio.ensure_future(self.runner.ask(question))
        while question.query not in self.runner._waiting:
            await asyncio.sleep(0)
        await asyncio.sleep(0.02)
        assert not task.done()
        return task

    async def decided_again(self, query: str) -> None:
        """Have a held question decided anew, as another query's batch does."""
        totals = self.runner.books.named(query).book.totals
        before = totals.decisions
        self.runner._waiting[query].wake(is_urgent=True)
        while totals.decisions == before:
            await asyncio.sleep(0)


def asked(terms: Terms, after: int = 0, **more: Any) -> BatchQuestion:
    inputs = more.pop("inputs", (LogInput(0, Input(S, Lsn(after))),))
    query = more.pop("query", "q")
    return BatchQuestion(query, "app", 2, inputs, terms, wait_s=more.pop("wait_s", LONG_S), **more)
