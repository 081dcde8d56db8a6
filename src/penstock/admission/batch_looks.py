"""Looks at the log for a question about a batch: what waits in its streams, where they are cut."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.admission.ages import FirstWaiting
from penstock.admission.batch_question import BatchQuestion, LogInput, OutsideInput, Take
from penstock.admission.books import KeptBook
from penstock.admission.cut import cut_batch
from penstock.admission.cuts import Batch
from penstock.admission.decision import Cut
from penstock.admission.offer import CutsBy, Offer, Waiting
from penstock.admission.shares import limits_within, share_of, take_within, taken
from penstock.admission.terms import CountedFrom
from penstock.log.decide.need import need_stream
from penstock.log.reading.commits import counts_between
from penstock.log.reading.substream_sizes import SubstreamSizes, substream_sizes
from penstock.log.reading.visible import check_position, latest
from penstock.log.reading.waiting import oldest_waiting
from penstock.log.state import StreamRecord
from penstock.log.store.view import StoreView
from penstock.model.answers import AdmittedInput
from penstock.model.ids import Lsn


class LogLook(NamedTuple):
    """A log input as it is now: its stream, where it ends, and what waits before that."""

    record: StreamRecord
    visible_end: Lsn
    waiting: Waiting


def aged(waiting: Waiting, passed_ms: float) -> Waiting:
    """An outside source's waiting data, so much older than they were told."""
    if waiting.oldest_age_ms is None:
        return waiting
    return msgspec.structs.replace(waiting, oldest_age_ms=waiting.oldest_age_ms + passed_ms)


def look(
    view: StoreView, log_input: LogInput, kept: KeptBook, wall_ms: int, now_ms: float
) -> LogLook:
    """A log input in one state of the log; refuses positions that cannot be read."""
    stream, after = need_stream(view, log_input.input.stream), log_input.input.after
    check_position(view, stream, after)
    visible_end = latest(view, stream)
    end = visible_end
    if log_input.limits.until is not None:
        check_position(view, stream, log_input.limits.until)
        end = min(end, log_input.limits.until)
    first = _first_waiting(view, stream, after, end, kept.book.terms.origin)
    age_ms = kept.ages.age_ms(log_input.source, first, wall_ms, now_ms, int(visible_end))
    rows, size_bytes = counts_between(view, stream, after, end)
    limits = log_input.limits
    rows_max = rows if limits.rows_max is None else min(rows, limits.rows_max)
    waiting = Waiting(
        log_input.source,
        rows=rows_max,
        bytes=size_bytes if rows == rows_max else round(size_bytes * rows_max / rows),
        oldest_age_ms=age_ms,
        cuts_by=CutsBy.ROWS,
    )
    return LogLook(stream, visible_end, waiting)


def _first_waiting(
    view: StoreView, stream: StreamRecord, after: Lsn, end: Lsn, counted_from: CountedFrom
) -> FirstWaiting | None:
    commit = next(iter(view.commits(stream, after + 1, end)), None) if end > after else None
    if commit is None:
        return None
    older_ms = 0
    if counted_from is CountedFrom.ORIGIN:
        oldest = oldest_waiting(view, stream, after, end)
        older_ms = 0 if oldest is None else oldest.arrived_at_ms - oldest.origin_at_ms
    return FirstWaiting(int(commit.lsn), commit.arrived_at_ms, older_ms)


def cut_inputs(
    view: StoreView,
    question: BatchQuestion,
    looks: dict[int, LogLook],
    offer: Offer,
    decision: Cut,
) -> tuple[tuple[AdmittedInput, ...], Batch]:
    """The ends of a batch in every source, and what lies before them."""
    share = share_of(decision, offer)
    answers = []
    counts: list[tuple[int | None, int | None]] = []
    for each, waiting in zip(question.inputs, offer.inputs, strict=True):
        if isinstance(each, OutsideInput):
            take: Take = "nothing"
            if waiting.has_data:
                take = take_within(waiting, share, decision.rows_max)
            answers.append(AdmittedInput(each.source, take=take))
            counts.append(taken(waiting, take))
            continue
        look = looks[each.source]
        limits = limits_within(each.limits, waiting, share)
        cut = cut_batch(view, look.record, each.input.after, look.visible_end, limits)
        answers.append(
            AdmittedInput(each.source, cut.end, look.visible_end, look.record.substreams)
        )
        counts.append(counts_between(view, look.record, each.input.after, cut.end))
    rows = [rows for rows, _ in counts]
    sizes = [size_bytes for _, size_bytes in counts]
    has_outside = any(isinstance(each, OutsideInput) for each in question.inputs)
    batch = Batch(_sum(rows), _sum(sizes), offer.oldest_age_ms, question.cores, has_outside)
    return tuple(answers), batch


def planned_sizes(
    view: StoreView,
    question: BatchQuestion,
    looks: dict[int, LogLook],
    answers: tuple[AdmittedInput, ...],
    batch: Batch,
) -> SubstreamSizes | None:
    """The bytes of a batch by the tasks that read the input that its pipeline is over; of a source
    outside the log, evenly over the cores. None without a pipeline."""
    if question.pipeline is None:
        return None
    source = question.pipeline.source
    for each, answer in zip(question.inputs, answers, strict=True):
        if each.source == source and isinstance(each, LogInput) and answer.end is not None:
            return substream_sizes(view, looks[source].record, each.input.after, answer.end)
    size_bytes = (batch.bytes or 0) // question.cores
    return SubstreamSizes(batch.rows or 0, (size_bytes,) * question.cores)


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
