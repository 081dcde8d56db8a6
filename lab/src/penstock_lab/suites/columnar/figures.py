"""Figures of the columnar suite from its runs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.measure.window_batches import AUTO
from penstock_lab.measure.window_cases import Case
from penstock_lab.percentiles import median
from penstock_lab.suites.columnar.cells import EXPANDING, SPARK, Plan
from penstock_lab.suites.columnar.runs import Record

WORKER_PARTS = {
    "boot": "until a worker has been taken and is at work",
    "init": "until it has read what it is to run",
    "code": "in which its code runs",
    "rest": "what is left: rows going there and back",
}


class Ratios(msgspec.Struct, frozen=True):
    """Ratios of one case: of each repeat, and their medians."""

    case: Case
    ratio: tuple[float, ...]
    """Spark over auto: how many times as long Spark takes."""
    choice: tuple[float, ...]
    """Auto, as planned, over the best path that was forced: what a better plan would have saved."""


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Times are medians of the repeats; a ratio is taken within a repeat, then its median."""
    made: list[Figure] = []
    every: list[Ratios] = []
    for case in plan.cases:
        repeats = [r["cases"][case.name] for r in records if case.name in r.get("cases", {})]
        for path in plan.paths:
            for key, sentence in (
                ("ms_p50", f"a batch of {case.rows:,} rows on path {path}"),
                ("stage_ms_p50", f"its stage below the shuffle on path {path}"),
            ):
                values = [repeat[path][key] for repeat in repeats if path in repeat]
                made += middle(f"{case.name}.{path}_{key}", "ms", sentence, values)
        every.append(ratios(case, repeats))
    for ratio in every:
        name = ratio.case.name
        made += middle(f"{name}.ratio", "x", "Spark's batch over auto's", ratio.ratio)
        made += middle(f"{name}.choice", "x", "auto's batch over the best path's", ratio.choice)
    return [*made, *headlines(every), *worker_figures(records)]


def ratios(case: Case, repeats: Sequence[dict[str, Any]]) -> Ratios:
    whole = [{path: by_path[path]["ms_p50"] for path in by_path} for by_path in repeats]
    ratio = tuple(ms[SPARK] / ms[AUTO] for ms in whole if SPARK in ms and ms.get(AUTO))
    forced = [{path: ms[path] for path in ms if path != AUTO} for ms in whole]
    choice = tuple(
        ms[AUTO] / min(others.values())
        for ms, others in zip(whole, forced, strict=True)
        if AUTO in ms and others
    )
    return Ratios(case, ratio, choice)


def headlines(every: Iterable[Ratios]) -> list[Figure]:
    goals = [ratio for ratio in every if ratio.case.is_goal]
    large = [ratio for ratio in goals if not ratio.case.is_small]
    expanding = [r for r in large if (r.case.range_s, r.case.slide_s) in EXPANDING]
    small = [ratio for ratio in goals if ratio.case.is_small]
    return [
        *_extreme(
            "headline.ratio_expanding_min", "Spark over auto, large batches, windows that expand",
            min, {r.case.name: r.ratio for r in expanding}, Goal("at least", 2)),
        *_extreme(
            "headline.ratio_small_min", "Spark over auto, small batches",
            min, {r.case.name: r.ratio for r in small}, Goal("at least", 0.9)),
        *_extreme(
            "headline.worst_choice", "auto, as planned, over the best path forced, the worst case",
            max, {r.case.name: r.choice for r in goals}, Goal("at most", 1.1)),
    ]  # fmt: skip


def _extreme(
    name: str,
    sentence: str,
    pick: Callable[..., str],
    repeats: Mapping[str, tuple[float, ...]],
    goal: Goal,
) -> list[Figure]:
    """The least or the greatest of the cases' medians."""
    middles = {
        case: value for case, values in repeats.items() if (value := median(values)) is not None
    }
    if not middles:
        return []
    case = pick(middles, key=lambda each: middles[each])
    return [Figure(name, "x", f"{sentence}: {case}", middles[case], repeats[case], goal)]


def auto_ways(records: Sequence[Record], case: Case) -> dict[str, float]:
    """The share of the measured batches of `auto` by the way that was planned, over all repeats;
    none where nothing was planned."""
    repeats = [
        record["cases"][case.name][AUTO].get("ways", {})
        for record in records
        if AUTO in record.get("cases", {}).get(case.name, {})
    ]
    names = sorted({way for ways in repeats for way in ways})
    return {way: sum(ways.get(way, 0.0) for ways in repeats) / len(repeats) for way in names}


def worker_figures(records: Sequence[Record]) -> list[Figure]:
    """A warm worker with one row: its parts, the task that asked it, and the whole way."""
    repeats = [record["round_trip"] for record in records if record.get("round_trip")]
    made: list[Figure] = []
    for part, sentence in WORKER_PARTS.items():
        values = [repeat[f"{part}_ms"] for repeat in repeats]
        made += middle(f"worker.{part}_ms_p50", "ms", sentence, values)
    tasks = [repeat["task_ms"] for repeat in repeats]
    made += middle("worker.task_ms_p50", "ms", "the task that asks it, scan and all", tasks)
    totals = [repeat["total_ms"] for repeat in repeats]
    words = "a warm worker with one row, there and back"
    goal = Goal("at most", 30)
    return [*made, *middle("headline.worker_ms_p50", "ms", words, totals, goal)]
