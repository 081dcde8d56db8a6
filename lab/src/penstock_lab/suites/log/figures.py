"""The figures of the suite from its runs. Pure: medians of the repeats, with their spread.

Every ratio is of neighbours in time, so that a busy minute of the machine falls on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock_lab.experiment.report import Figure, Goal
from penstock_lab.percentiles import median
from penstock_lab.suites.log.plan import EMBEDDED, SIZES, WRITERS, Plan

HEADLINE = "headline."
TAG_GOAL, START_GOAL, RECOVERY_GOAL, RECOVERY_LOG_GOAL = 0.9, 2.0, 14.0, 300.0


def figures(plan: Plan, runs: Sequence[dict[str, Any]]) -> list[Figure]:
    """Per backend its appends and deliveries; then what sums the log up: the embedded one in the
    headlines, JetStream under its name and without a goal."""
    found: list[Figure] = []
    for backend in plan.backends:
        mine = [run for run in runs if run.get("backend") == backend]
        found += _appends(backend, [run for run in mine if run["measured"] == "appends"])
        found += _deliveries(backend, [run for run in mine if run["measured"] == "deliver"])
    for worker, sum_up in (("tags", _tags), ("starts", _starts), ("recovery", _recovery)):
        for run in runs:
            if run["measured"] == worker:
                found += _named(run, sum_up(plan, run))
    return found


def _appends(backend: str, runs: Sequence[dict[str, Any]]) -> list[Figure]:
    found = []
    for size in SIZES:
        for writers in WRITERS:
            name = f"{size}.w{writers}"
            for key, unit, what in (
                ("append_per_s", "/s", "durable appends per second"),
                ("append_ms_p50", "ms", "one durable append, median"),
                ("append_ms_p99", "ms", "one durable append, 99 of 100"),
            ):
                repeats = tuple(float(run[name][key]) for run in runs)
                found += _middle(f"{backend}.{name}.{key}", unit, what, repeats)
    return found


def _deliveries(backend: str, runs: Sequence[dict[str, Any]]) -> list[Figure]:
    found = []
    for key, what in (
        ("deliver_ms_p50", "append to consumed by another process, median"),
        ("deliver_ms_p99", "append to consumed by another process, 99 of 100"),
    ):
        repeats = tuple(float(run[key]) for run in runs)
        found += _middle(f"{backend}.{key}", "ms", what, repeats)
    return found


def _named(run: dict[str, Any], figures: list[Figure]) -> list[Figure]:
    backend = run["backend"]
    if backend == EMBEDDED:
        return figures
    return [
        msgspec.structs.replace(one, name=f"{backend}.{one.name.removeprefix(HEADLINE)}", goal=None)
        for one in figures
    ]


def _tags(plan: Plan, run: dict[str, Any]) -> list[Figure]:
    few, many = run["few_mb_per_s"], run["many_mb_per_s"]
    ratios = tuple(above / below for above, below in zip(many, few, strict=True))
    return [
        *_middle("tag_read_few_mb_per_s", "MB/s", f"one of {plan.tags_few} tags", tuple(few)),
        *_middle("tag_read_many_mb_per_s", "MB/s", f"one of {plan.tags_many:,} tags", tuple(many)),
        *_middle(
            "headline.tag_read_ratio",
            "x",
            f"MB/s reading one tag, of {plan.tags_many:,} tags over of {plan.tags_few}",
            ratios,
            Goal("at least", TAG_GOAL),
        ),
    ]


def _starts(plan: Plan, run: dict[str, Any]) -> list[Figure]:
    small, large = plan.starts_gb(run["backend"])
    sizes = f"{large:g} GB over {small:g} GB"
    found = []
    for key, what in (
        ("large_cold_ms", "process start to first answered append, large log, pages dropped"),
        ("small_cold_ms", "the same, small log"),
        ("large_cold_open_ms", "of that the log's own part, large log"),
        ("small_cold_open_ms", "of that the log's own part, small log"),
    ):
        found += _middle(f"start_{key}", "ms", what, tuple(run[key]))
    for name, kind, goal in (
        ("headline.start_ratio", "cold", Goal("at most", START_GOAL)),
        ("start_warm_ratio", "warm", None),
        ("start_open_ratio", "cold_open", None),
    ):
        pairs = zip(run[f"large_{kind}_ms"], run[f"small_{kind}_ms"], strict=True)
        ratios = tuple(above / below for above, below in pairs)
        said = {
            "cold": f"process start to first answered append, {sizes}, pages dropped",
            "warm": f"the same, {sizes}, pages in memory",
            "cold_open": f"the log's own part, {sizes}, pages dropped",
        }[kind]
        found += _middle(name, "x", said, ratios, goal)
    return found


def _recovery(plan: Plan, run: dict[str, Any]) -> list[Figure]:
    what = f"Q8, {plan.recover_s} s of changes at {plan.recover_rate:,} events/s"
    ratios, log_ratios = (
        tuple(
            without / given
            for without, given in zip(run[f"without_{key}"], run[f"with_{key}"], strict=True)
        )
        for key in ("ms", "log_ms")
    )
    return [
        *_middle(
            "recovery_without_ms", "ms", "start to first new marker, no checkpoint",
            tuple(run["without_ms"]),
        ),
        *_middle(
            "recovery_with_ms", "ms",
            f"start to first new marker, a checkpoint every {plan.recover_checkpoint_s} s",
            tuple(run["with_ms"]),
        ),
        *_middle(
            "recovery_log_ms", "ms", "of that reading and replaying, with checkpoints",
            tuple(run["with_log_ms"]), Goal("under", RECOVERY_LOG_GOAL),
        ),
        *_middle(
            "recovery_log_ratio", "x", "reading and replaying, without over with checkpoints",
            log_ratios,
        ),
        *_middle(
            "headline.recovery_ratio", "x", f"{what}: without over with checkpoints", ratios,
            Goal("at least", RECOVERY_GOAL),
        ),
    ]  # fmt: skip


def _middle(
    name: str, unit: str, what: str, repeats: tuple[float, ...], goal: Goal | None = None
) -> list[Figure]:
    middle = median(repeats)
    return [] if middle is None else [Figure(name, unit, what, middle, repeats, goal)]
