"""Figures of the shocks in the deadlines suite: a burst, a backlog, a patient neighbour. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import SHARE, Figure
from penstock_lab.suites.deadlines.cells import BESIDE, BESIDE_S
from penstock_lab.suites.deadlines.record import Record

NOT_BACK = "; not back by the end of the run"


def shock_figures(records: Sequence[Record]) -> list[Figure]:
    """Figures of all three; a run with a wrong answer enters none."""
    return [*burst_figures(records), *backlog_figures(records), *beside_figures(records)]


def burst_figures(records: Sequence[Record]) -> list[Figure]:
    """After ten times the rate for five seconds: by mode, the worst of its queries."""
    made = []
    for record in records:
        if record.kind == "burst" and record.is_right and record.recoveries:
            each = record.recoveries.values()
            level_ms = max(recovery.level_ms for recovery in each)
            is_back = all(recovery.is_back for recovery in each)
            back_s = max(recovery.back_s for recovery in each)
            sentence = f"from the burst's end to the last batch over {level_ms:,.0f} ms, the "
            sentence += "deadline or the calm's longest" + ("" if is_back else NOT_BACK)
            made += [
                Figure(f"burst.{record.system}.back_s", "s", sentence, back_s),
                Figure(
                    f"burst.{record.system}.worst_ms",
                    "ms",
                    "the longest latency of a row from the burst on",
                    max(recovery.worst_ms for recovery in each),
                ),
            ]
    return made


def backlog_figures(records: Sequence[Record]) -> list[Figure]:
    """From the start of a query that a million rows wait for."""
    made = []
    for record in records:
        spans = [span for run in record.queries.values() for span in run.spans if span.rows]
        if record.kind != "backlog" or not record.is_right or not spans:
            continue
        name, started_ms = f"backlog.{record.system}", record.started_ms
        first_s = (spans[0].visible_ms - started_ms) / 1000
        longest_s = max(span.took_ms for span in spans) / 1000
        made += [
            Figure(f"{name}.first_visible_s", "s", "from its start to its first marker", first_s),
            Figure(f"{name}.first_batch_rows", "rows", "in the first batch", spans[0].rows),
            Figure(f"{name}.longest_batch_s", "s", "the longest batch, cut to marker", longest_s),
        ]
        for recovery in record.recoveries.values():
            words = "from its start to the last batch with a new row after its deadline"
            words += "" if recovery.is_back else NOT_BACK
            made.append(Figure(f"{name}.back_s", "s", words, recovery.back_s))
    return made


def beside_figures(records: Sequence[Record]) -> list[Figure]:
    """The query with a deadline of 1 s, beside one whose batches hold 10 s of rows."""
    made = []
    short_s, _ = BESIDE_S
    for record in records:
        if record.kind == "beside" and record.is_counted:
            hurried = record.queries[BESIDE[0]]
            name, latency = f"beside.{record.system}", hurried.run.latency
            if latency is not None:
                words = f"an input row of the query with {short_s:g} s, 95 of 100"
                made.append(Figure(f"{name}.p95_ms", "ms", words, latency.p95))
            ratio = hurried.miss_ratios.get(f"{short_s:g}")
            if ratio is not None:
                words = f"its input rows later than {short_s:g} s"
                made.append(Figure(f"{name}.miss_ratio", SHARE, words, ratio))
    return made
