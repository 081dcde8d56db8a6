"""Figures of the log suite from its runs. Pure.

Figures are medians of the repeats; every ratio is of neighbours in time, so that a busy minute of
the machine falls on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock_lab.experiment.figures import HEADLINE, Figure, Goal, middle
from penstock_lab.measure.log_sizes import EMBEDDED, SIZES, WRITERS
from penstock_lab.suites.log.cells import Plan
from penstock_lab.suites.log.gateway import gateway_figures
from penstock_lab.suites.log.runs import Record

TAG_GOAL, START_GOAL, RECOVERY_GOAL, RECOVERY_LOG_GOAL = 0.9, 2.0, 14.0, 300.0


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per backend its appends and deliveries; then what sums the log up: the embedded record in the
    headlines, JetStream under its name and without a goal."""
    made = gateway_figures(records)
    for backend in plan.backends:
        mine = [record for record in records if record.get("backend") == backend]
        made += _appends(backend, [record for record in mine if record["measured"] == "appends"])
        made += _deliveries(backend, [record for record in mine if record["measured"] == "deliver"])
    for kind, sum_up in (("tags", _tags), ("starts", _starts), ("recovery", _recovery)):
        for record in records:
            if record["measured"] == kind:
                made += _named(record["backend"], sum_up(plan, record))
    return made


def _appends(backend: str, records: Sequence[Record]) -> list[Figure]:
    made = []
    for size in SIZES:
        for writers in WRITERS:
            name = f"{size}.w{writers}"
            for key, unit, sentence in (
                ("append_per_s", "/s", "durable appends per second"),
                ("append_ms_p50", "ms", "one durable append, median"),
                ("append_ms_p99", "ms", "one durable append, 99 of 100"),
            ):
                repeats = tuple(float(record[name][key]) for record in records)
                made += middle(f"{backend}.{name}.{key}", unit, sentence, repeats)
    return made


def _deliveries(backend: str, records: Sequence[Record]) -> list[Figure]:
    made = []
    for key, sentence in (
        ("deliver_ms_p50", "append to consumed by another process, median"),
        ("deliver_ms_p99", "append to consumed by another process, 99 of 100"),
    ):
        repeats = tuple(float(record[key]) for record in records)
        made += middle(f"{backend}.{key}", "ms", sentence, repeats)
    return made


def _named(backend: str, figures: list[Figure]) -> list[Figure]:
    if backend == EMBEDDED:
        return figures
    return [
        msgspec.structs.replace(
            figure, name=f"{backend}.{figure.name.removeprefix(HEADLINE)}", goal=None
        )
        for figure in figures
    ]


def _tags(plan: Plan, record: Record) -> list[Figure]:
    few, many = record["few_mb_per_s"], record["many_mb_per_s"]
    ratios = tuple(above / below for above, below in zip(many, few, strict=True))
    return [
        *middle("tag_read_few_mb_per_s", "MB/s", f"one of {plan.tags_few} tags", tuple(few)),
        *middle("tag_read_many_mb_per_s", "MB/s", f"one of {plan.tags_many:,} tags", tuple(many)),
        *middle(
            "headline.tag_read_ratio",
            "x",
            f"MB/s reading one tag, of {plan.tags_many:,} tags over of {plan.tags_few}",
            ratios,
            Goal("at least", TAG_GOAL),
        ),
    ]


def _starts(plan: Plan, record: Record) -> list[Figure]:
    small, large = plan.starts_gb(record["backend"])
    sizes = f"{large:g} GB over {small:g} GB"
    made = []
    for key, sentence in (
        ("large_cold_ms", "process start to first answered append, large log, pages dropped"),
        ("small_cold_ms", "the same, small log"),
        ("large_cold_open_ms", "of that the log's own part, large log"),
        ("small_cold_open_ms", "of that the log's own part, small log"),
    ):
        made += middle(f"start_{key}", "ms", sentence, tuple(record[key]))
    for name, state, goal in (
        ("headline.start_ratio", "cold", Goal("at most", START_GOAL)),
        ("start_warm_ratio", "warm", None),
        ("start_open_ratio", "cold_open", None),
    ):
        pairs = zip(record[f"large_{state}_ms"], record[f"small_{state}_ms"], strict=True)
        ratios = tuple(above / below for above, below in pairs)
        said = {
            "cold": f"process start to first answered append, {sizes}, pages dropped",
            "warm": f"the same, {sizes}, pages in memory",
            "cold_open": f"the log's own part, {sizes}, pages dropped",
        }[state]
        made += middle(name, "x", said, ratios, goal)
    return made


def _recovery(plan: Plan, record: Record) -> list[Figure]:
    workload = f"Q8, {plan.recover_s} s of changes at {plan.recover_rate:,} events/s"
    ratios, log_ratios = (
        tuple(
            without / given
            for without, given in zip(record[f"without_{key}"], record[f"with_{key}"], strict=True)
        )
        for key in ("ms", "log_ms")
    )
    return [
        *middle(
            "recovery_without_ms", "ms", "start to first new marker, no checkpoint",
            tuple(record["without_ms"]),
        ),
        *middle(
            "recovery_with_ms", "ms",
            f"start to first new marker, a checkpoint every {plan.recover_checkpoint_s} s",
            tuple(record["with_ms"]),
        ),
        *middle(
            "recovery_log_ms", "ms", "of that reading and replaying, with checkpoints",
            tuple(record["with_log_ms"]), Goal("under", RECOVERY_LOG_GOAL),
        ),
        *middle(
            "recovery_log_ratio", "x", "reading and replaying, without over with checkpoints",
            log_ratios,
        ),
        *middle(
            "headline.recovery_ratio", "x", f"{workload}: without over with checkpoints", ratios,
            Goal("at least", RECOVERY_GOAL),
        ),
    ]  # fmt: skip
