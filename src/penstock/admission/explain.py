"""Admission explained: a query's decisions with their reasons, and its figures for metrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.admission.book import QueryBook
from penstock.admission.cuts import DecisionLine
from penstock.admission.load import NO_LOAD, Load
from penstock.admission.pace import floor_ms, sustainable_ms, unsustainable_rate
from penstock.model.admission_answers import AdmissionDecision, QueryAdmission


def explain(book: QueryBook, load: Load, now_ms: float) -> QueryAdmission:
    """The state of one query beside the others of its application, its newest decision first."""
    cores, totals, arrivals = book.cores, book.totals, book.arrivals
    tells_rows = arrivals.rows.waiting is not None
    tells_bytes = arrivals.bytes.waiting is not None
    line = book.ours.line_by_rows(cores)
    warnings = (floor_warning(book), unsustainable_rate(book, load, cores))
    return QueryAdmission(
        query=book.query,
        name=book.name,
        policy=book.terms.policy,
        deadline_ms=book.deadline_ms,
        deadline_set_by=deadline_set_by(book),
        importance=book.terms.importance,
        batches=book.totals.batches,
        batches_late=book.totals.batches_late,
        slack_ms_p50=book.slack_ms.quantile(0.5) if len(book.slack_ms) else None,
        slack_ms_p5=book.slack_ms.quantile(0.05) if len(book.slack_ms) else None,
        floor_ms=floor_ms(book, cores),
        sustainable_ms=sustainable_ms(book, load, cores),
        fixed_ms=None if line is None else line.fixed,
        ms_per_1000_rows=None if line is None else 1000 * line.slope,
        rows_per_s=1000 * arrivals.rows.per_ms if tells_rows else None,
        rows_waiting=arrivals.rows.waiting,
        backlog_rows_per_s=1000 * arrivals.rows.growth_per_ms if tells_rows else None,
        errors={name: values.quantile(0.5) for name, values in book.errors.items() if len(values)},
        decisions=tuple(_decision(line, now_ms) for line in reversed(book.decisions)),
        warning="; ".join(sentence for sentence in warnings if sentence) or None,
        moment_late_ms_p95=(
            book.moment_late_ms.quantile(0.95) if len(book.moment_late_ms) else None
        ),
        decision_share=totals.decision_ms / totals.batch_ms if totals.batch_ms else None,
        moments_unasked=totals.moments_unasked,
        planning_share=totals.planning_ms / totals.batch_ms if totals.batch_ms else None,
        bytes_per_s=1000 * arrivals.bytes.per_ms if tells_bytes else None,
        bytes_waiting=arrivals.bytes.waiting,
        backlog_bytes_per_s=1000 * arrivals.bytes.growth_per_ms if tells_bytes else None,
        files_waiting=arrivals.files.waiting,
    )


def deadline_set_by(book: QueryBook) -> str:
    """The origin of the deadline in force: operator, query, chain, auto, or nobody."""
    if book.deadline_ms is None:
        return "nobody"
    if book.chain_deadline_ms == book.deadline_ms:
        return "chain"
    if book.operator_deadline_ms is not None:
        return "operator"
    return "query" if book.terms.deadline_ms is not None else "auto"


def floor_warning(book: QueryBook) -> str | None:
    """A sentence for a deadline that no batch can keep; None if there is no such."""
    floor, deadline_ms = floor_ms(book, book.cores), book.deadline_ms
    if floor is None or deadline_ms is None or deadline_ms >= floor:
        return None
    return (
        f"the deadline of {deadline_ms:g} ms is below the floor: the smallest batch of this query "
        f"takes {floor:.0f} ms; give it a longer one"
    )


def _decision(line: DecisionLine, now_ms: float) -> AdmissionDecision:
    return AdmissionDecision(
        ago_ms=now_ms - line.at_ms,
        is_cut=line.is_cut,
        reason=line.reason,
        rows=line.rows,
        bytes=line.bytes,
        oldest_age_ms=line.oldest_age_ms,
        predicted_ms=line.predicted_ms,
        left_ms=line.left_ms,
        measured_ms=line.measured_ms,
        ends_in_ms=None if line.until_ms is None else line.until_ms - now_ms,
    )


_METRICS = {
    "batches_total": ("counter", "batches with data that were measured"),
    "late_total": ("counter", "batches whose oldest row was visible after its deadline"),
    "cuts_expired_total": ("counter", "cuts of which nothing was heard for ten predictions"),
    "questions_total": ("counter", "questions that were asked"),
    "decisions_total": ("counter", "decisions that were made for them"),
    "decision_seconds_total": ("counter", "time that decisions took"),
    "batch_seconds_total": ("counter", "time of the batches from cut to visible"),
    "moment_late_seconds": (
        "gauge",
        "delay of a cut after the moment that was decided for it, 95th percentile",
    ),
    "moments_unasked_total": (
        "counter",
        "moments that passed while Spark asked nothing, such as in a batch without data",
    ),
    "deadline_seconds": ("gauge", "deadline in force"),
    "slack_seconds": ("gauge", "time left when a batch is visible, median"),
    "slack_low_seconds": ("gauge", "time left when a batch is visible, 5th percentile"),
    "floor_seconds": ("gauge", "the least that a batch takes"),
    "error_ratio": ("gauge", "median error of our prediction of cut to visible"),
    "backlog_rows": ("gauge", "rows that wait"),
    "backlog_growth_rows": ("gauge", "rows per second by which the backlog grows"),
    "backlog_bytes": ("gauge", "bytes that wait"),
    "backlog_growth_bytes": ("gauge", "bytes per second by which the backlog grows"),
    "backlog_files": ("gauge", "files that wait"),
}


def metrics_text(books: Iterable[QueryBook], now_ms: float) -> str:
    """The figures of all queries in the text form that Prometheus reads."""
    # No figure here depends on the other queries.
    explained = [(book, explain(book, NO_LOAD, now_ms)) for book in books]
    lines = []
    for metric, (kind, meaning) in _METRICS.items():
        name = f"penstock_admission_{metric}"
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        for book, explanation in explained:
            value = dict(_values(book, explanation))[metric]
            if value is not None:
                label = _escaped(book.name or "")
                lines.append(f'{name}{{query="{_escaped(book.query)}",name="{label}"}} {value:g}')
    return "\n".join(lines) + "\n"


def _values(book: QueryBook, explained: QueryAdmission) -> Iterator[tuple[str, float | None]]:
    yield "batches_total", explained.batches
    yield "late_total", explained.batches_late
    yield "cuts_expired_total", book.totals.cuts_expired
    yield "questions_total", book.totals.questions
    yield "decisions_total", book.totals.decisions
    yield "decision_seconds_total", book.totals.decision_ms / 1000
    yield "batch_seconds_total", book.totals.batch_ms / 1000
    yield "moment_late_seconds", _seconds(explained.moment_late_ms_p95)
    yield "moments_unasked_total", explained.moments_unasked
    yield "deadline_seconds", _seconds(explained.deadline_ms)
    yield "slack_seconds", _seconds(explained.slack_ms_p50)
    yield "slack_low_seconds", _seconds(explained.slack_ms_p5)
    yield "floor_seconds", _seconds(explained.floor_ms)
    yield "error_ratio", explained.errors.get("ours")
    yield "backlog_rows", explained.rows_waiting
    yield "backlog_growth_rows", explained.backlog_rows_per_s
    yield "backlog_bytes", explained.bytes_waiting
    yield "backlog_growth_bytes", explained.backlog_bytes_per_s
    yield "backlog_files", explained.files_waiting


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
