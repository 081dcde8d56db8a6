"""Admission with deadlines carried out: look into the log, ask the pure decision, wait."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from penstock.admission.batch_looks import LogLook, aged, cut_inputs, look, planned_sizes
from penstock.admission.batch_plans import BatchPlans
from penstock.admission.batch_question import BatchAnswer, BatchQuestion, LogInput
from penstock.admission.books import WRITES_MAX, AskingQuery, Books, KeptBook
from penstock.admission.decide import decide
from penstock.admission.decision import Cut, Wait, data_wakes_from_ms
from penstock.admission.hold import Held, Watch
from penstock.admission.offer import Offer
from penstock.admission.planning import BatchPlanner
from penstock.admission.question import Input, QueryRun
from penstock.admission.terms import terms_problem
from penstock.clock import Clock
from penstock.errors import BadCall
from penstock.log.backends.local import LocalLog
from penstock.log.decide.fence import check_instance
from penstock.model.answers import AdmittedInput
from penstock.model.ids import QueryId

_LOG = logging.getLogger("penstock.admission")
WAIT_S_MIN = 0.001
OVERTIME_MS = 25.0
"""A question is held this much longer if its moment is as near: Spark pauses for 10 ms before it
asks again, and would miss it."""

HoldInput = Callable[[QueryRun, Input, int], Awaitable[None]]


class _Marked(msgspec.Struct):
    """A marker read for its positions and for the streams it wrote; all else is passed over."""

    class Written(msgspec.Struct):
        """The part of a marker's writes that names a stream."""

        stream: str

    positions: dict[str, int] = {}
    writes: list[Written] = []


_decode_marker = msgspec.json.Decoder(_Marked).decode


class BatchAdmissionRunner:
    """Answers the questions of all queries with a deadline or a policy. Used on one event loop,
    but for `marker_applied`."""

    def __init__(
        self,
        log: LocalLog,
        held: Held,
        clock: Clock,
        first_cut: int,
        hold_input: HoldInput,
        planner: BatchPlanner | None = None,
    ) -> None:
        self.books = Books(first_cut)
        self._log = log
        self._held = held
        self._clock = clock
        self._hold_input = hold_input
        self._plans = BatchPlans(planner, self.now_ms)
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[str, Watch] = {}
        log.on_marked(self.marker_applied)

    def now_ms(self) -> float:
        """The monotonic time that books are kept in."""
        return self._clock.monotonic_s() * 1000

    async def ask(self, question: BatchQuestion) -> BatchAnswer:
        """Answer a question, in this order:

        1. refuse terms that cannot be kept, and a pipeline that cannot run as it must;
        2. hold the inputs for the run that asks, so that what it is told to read is there;
        3. learn from the batches it reports, then decide;
        4. while the decision is to wait, wait for its moment, for data or for another query, and
           decide again, until the time of the question is over.
        """
        problem = terms_problem(question.terms)
        if problem is not None:
            raise BadCall(problem, code="bad_terms")
        problem = self._plans.problem(question)
        if problem is not None:
            raise BadCall(problem, code="no_gpu")
        if question.run is not None:
            for log_input in question.log_inputs:
                await self._hold_input(question.run, log_input.input, log_input.number)
        kept = self._heard(question)
        wait_s = 0.0 if question.is_first else question.wait_s
        asked_at_ms = self.now_ms()
        streams = [log_input.input.stream for log_input in question.log_inputs]
        is_first_look = True
        with self._held.watch(streams, wait_s) as watch:
            self._waiting[question.query] = watch
            kept.questions_held += 1
            try:
                while True:
                    began_ms = self.now_ms()
                    decided = self._decide(question, kept, asked_at_ms, is_first_look)
                    kept.book.totals.decision_ms += self.now_ms() - began_ms
                    is_first_look = False
                    if isinstance(decided, BatchAnswer):
                        return decided
                    answer, wait, has_data = decided
                    if not await self._pause(watch, wait, has_data, asked_at_ms + wait_s * 1000):
                        return answer
            finally:
                kept.questions_held -= 1
                kept.heard_at_ms = self.now_ms()
                if self._waiting.get(question.query) is watch:
                    del self._waiting[question.query]

    def _heard(self, question: BatchQuestion) -> KeptBook:
        now_ms = self.now_ms()
        instance = None if question.run is None else int(question.run.instance)
        asking = AskingQuery(question.query, question.name, question.application, instance)
        kept = self.books.heard(asking, question.terms, now_ms)
        kept.reads = frozenset(str(each.input.stream) for each in question.log_inputs)
        kept.book.cores = question.cores
        kept.noted(question.plan_notes)
        for report in question.reports:
            kept.count_rule_time(report)
            kept.book.reported(report, now_ms)
        if self._plans.heard(question):
            # Once this question has its answer, or is held: nobody waits for it.
            self._loop.call_soon(self._plans.learn, question.query, kept.book.totals)
        self._wake_those_giving_way(kept)
        self.books.divide_chains(now_ms)
        return kept

    async def _pause(self, watch: Watch, wait: Wait, has_data: bool, hold_end_ms: float) -> bool:
        """Wait until it is worth deciding again; False when the question's time is over."""
        now_ms = self.now_ms()
        if has_data and hold_end_ms > now_ms and wait.until_ms - hold_end_ms < OVERTIME_MS:
            hold_end_ms = max(hold_end_ms, wait.until_ms)
        if now_ms >= hold_end_ms or self._held.released:
            return False
        until_ms = min(hold_end_ms, wait.until_ms)
        data_from_ms = data_wakes_from_ms(wait, now_ms) if has_data else now_ms
        await watch.wait_between(
            max((data_from_ms - now_ms) / 1000, 0.0), max((until_ms - now_ms) / 1000, WAIT_S_MIN)
        )
        return not self._held.released

    def _decide(
        self, question: BatchQuestion, kept: KeptBook, asked_at_ms: float, is_first_look: bool
    ) -> BatchAnswer | tuple[BatchAnswer, Wait, bool]:
        """One look at the log and one decision: the answer with a cut, or the one without, the wait
        and whether data wait."""
        book = kept.book
        with self._log.reading() as view:
            if question.run is not None:
                check_instance(view, question.run.query, question.run.instance)
            now_ms, wall_ms = self.now_ms(), self._clock.wall_ms()
            looks = {
                log_input.source: look(view, log_input, kept, wall_ms, now_ms)
                for log_input in question.log_inputs
            }
            offer = Offer(
                tuple(
                    looks[each.source].waiting
                    if isinstance(each, LogInput)
                    else aged(each.waiting, now_ms - asked_at_ms)
                    for each in question.inputs
                ),
                question.cores,
                question.is_first,
                question.must_cut,
                question.schedule,
            )
            if is_first_look:
                book.asked(offer, now_ms)
            else:
                book.offered(offer, now_ms)
            was_planned = book.planned is not None
            decision = decide(book, offer, self.books.load_for(book, now_ms), now_ms)
            book.decided(decision, offer, now_ms)
            if isinstance(decision, Wait):
                return self._nothing(question, kept, looks, decision), decision, offer.has_data
            answers, batch = cut_inputs(view, question, looks, offer, decision)
            sizes = self._plans.sizes(
                question,
                book.totals,
                lambda: planned_sizes(view, question, looks, answers, batch),
            )
        number = book.cut_made(decision, batch, now_ms, _ends(question, answers))
        if not was_planned:
            self._wake_others(kept)
        self._warn(kept, decision)
        return BatchAnswer(
            number,
            answers,
            decision.left_ms,
            decision.weight,
            decision.predicted_ms,
            decision.reason,
            book.terms.policy,
            book.deadline_ms,
            self._plans.plan(question, book.totals, number, batch, decision, sizes),
        )

    def _nothing(
        self, question: BatchQuestion, kept: KeptBook, looks: dict[int, LogLook], wait: Wait
    ) -> BatchAnswer:
        answers = tuple(
            AdmittedInput(
                each.source,
                each.input.after,
                looks[each.source].visible_end,
                looks[each.source].record.substreams,
            )
            if isinstance(each, LogInput)
            else AdmittedInput(each.source, take="nothing")
            for each in question.inputs
        )
        book = kept.book
        return BatchAnswer(
            None, answers, None, 1.0, None, wait.reason, book.terms.policy, book.deadline_ms
        )

    def _wake_others(self, kept: KeptBook) -> None:
        """Have queries of the application decide again that this batch was no part of the plans
        of: it takes cores from those with a later deadline."""
        for query, watch in self._waiting.items():
            other = self.books.known(query)
            if other is None or other is kept or other.book.application != kept.book.application:
                continue
            if other.book.is_overtaken_by(kept.book):
                watch.wake(is_urgent=True)

    def _warn(self, kept: KeptBook, decision: Cut) -> None:
        """Say once for each deadline that it is below the floor; every answer says it, too."""
        deadline_ms = kept.book.deadline_ms
        if decision.is_below_floor and kept.warned_of_ms != deadline_ms:
            kept.warned_of_ms = deadline_ms
            _LOG.warning("query %s: %s", kept.book.name or kept.book.query, decision.reason)

    def set_deadline(self, kept: KeptBook, deadline_ms: float | None) -> None:
        """Another deadline from an operator, in force at once: a question that is held is decided
        anew. None takes it back."""
        kept.book.operator_set(deadline_ms)
        watch = self._waiting.get(kept.book.query)
        if watch is not None:
            watch.wake(is_urgent=True)

    # Markers

    def marker_applied(self, query: QueryId, payload: bytes) -> None:
        """From any thread: a marker of the query is durable and can be read."""
        if self.books.known(query) is not None and not self._loop.is_closed():
            at_ms = self.now_ms()
            self._loop.call_soon_threadsafe(self._marked, query, payload, at_ms)

    def _marked(self, query: QueryId, payload: bytes, at_ms: float) -> None:
        kept = self.books.known(query)
        if kept is None:
            return
        marker = _decode_marker(payload)
        kept.book.marked(marker.positions, at_ms)
        if len(kept.writes) < WRITES_MAX:
            kept.writes |= {written.stream for written in marker.writes}
        self._wake_those_giving_way(kept)

    def _wake_those_giving_way(self, kept: KeptBook) -> None:
        """Have queries decide again that wait for another one to finish: `kept` may have."""
        for query, watch in self._waiting.items():
            other = self.books.known(query)
            if other is not None and other is not kept and other.book.gives_way:
                watch.wake(is_urgent=True)


def _ends(question: BatchQuestion, answers: tuple[AdmittedInput, ...]) -> dict[str, int]:
    """The positions by stream that the marker of a batch will have: of several sources that read
    one stream the first."""
    ends: dict[str, int] = {}
    for log_input, answer in zip(question.inputs, answers, strict=True):
        if isinstance(log_input, LogInput) and answer.end is not None:
            stream = str(log_input.input.stream)
            ends[stream] = min(int(answer.end), ends.get(stream, int(answer.end)))
    return ends
