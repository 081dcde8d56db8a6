"""The columnar suite: what a batch over sliding windows takes on each path that it can take.

Every path is forced in turn, and `auto` is what a session does by itself. All run in one session a
repeat, over input that is written once, so that neither a slow minute of the machine nor another
file falls on one of them only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.experiment import worker
from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import bare_table, show_figures
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.experiment.worker import Job
from penstock_lab.measure import window_batches
from penstock_lab.measure.window_batches import AUTO, PATH_CONF, Case
from penstock_lab.percentiles import median

WORKER = "penstock_lab.measure.window_batches"
SPARK = "spark"
PATHS = tuple(PATH_CONF)
Record: TypeAlias = dict[str, Any]
FILL_TIMEOUT_S = 600.0
RUN_TIMEOUT_S = 1_800.0
ROWS, ROWS_SMALL = 400_000, 20_000
RATE = 40_000
COMMIT_ROWS = 20_000
GOAL_QUERIES = ("cm_category", "cm_job", "lr_speed")
OTHER_QUERIES = ("lr_count",)
"""A vehicle has one row per pane, and its state a row per window: nothing to gain below state."""
WINDOWS = ((30, 1), (60, 5), (60, 10))
SMALL_WINDOW = (60, 5)
EXPANDING = frozenset({(30, 1), (60, 5)})
"""Windows of which a row is in so many that their expansion is most of a batch."""


class Plan(msgspec.Struct, frozen=True):
    """The cases and their sizes; the quick plan differs in repeats and batches only."""

    repeats: int
    batches: int
    warm_up: int
    small_batches: int
    small_warm_up: int
    rows: int = ROWS
    rows_small: int = ROWS_SMALL
    rate: int = RATE
    commit_rows: int = COMMIT_ROWS
    paths: tuple[str, ...] = PATHS
    queries: tuple[str, ...] = (*GOAL_QUERIES, *OTHER_QUERIES)

    @property
    def cases(self) -> tuple[Case, ...]:
        """Goals first, and of each query the large batches before the small ones."""
        return tuple(
            case
            for family in self.queries
            for case in (
                *(self._large(family, *window) for window in WINDOWS if family in GOAL_QUERIES),
                self._small(family),
            )
        )

    def _large(self, family: str, range_s: int, slide_s: int) -> Case:
        return Case(family, range_s, slide_s, self.rows, self.batches, self.warm_up)

    def _small(self, family: str) -> Case:
        is_goal = family in GOAL_QUERIES
        counts = (self.small_batches, self.small_warm_up)
        return Case(family, *SMALL_WINDOW, self.rows_small, *counts, True, is_goal)


QUICK = Plan(repeats=3, batches=5, warm_up=2, small_batches=12, small_warm_up=4)
FULL = Plan(repeats=5, batches=10, warm_up=3, small_batches=30, small_warm_up=8)


def plan_of(*, quick: bool = False, queries: tuple[str, ...] = ()) -> Plan:
    plan = QUICK if quick else FULL
    unknown = [name for name in queries if name not in plan.queries]
    if unknown:
        raise BadCall(
            f"there is no query {', '.join(unknown)} here; there is {', '.join(plan.queries)}",
            code="unknown_query",
        )
    chosen = tuple(name for name in plan.queries if name in (queries or plan.queries))
    return msgspec.structs.replace(plan, queries=chosen)


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    """Needs about 2 GB in the folder."""
    options = {
        "cases": msgspec.to_builtins(plan.cases),
        "rate": plan.rate,
        "commit_rows": plan.commit_rows,
        "data": str(folder / "data"),
        "paths": plan.paths,
    }
    fill = Job("fill", str(folder / "fill"), options)
    yield step("writing the input", 0, fill, FILL_TIMEOUT_S)
    for repeat in range(plan.repeats):
        turn = f"{repeat + 1} of {plan.repeats}"
        words = f"{len(plan.cases)} cases on {len(plan.paths)} paths, {turn}"
        job = Job("paths", str(folder / f"repeat{repeat}"), {**options, "repeat": repeat})
        yield step(words, repeat, job, RUN_TIMEOUT_S)


def step(words: str, repeat: int, job: Job, timeout_s: float) -> Step[Record]:
    def measure() -> Record:
        answer = worker.ask_apart(WORKER, job, timeout_s)
        return {"system": job.system, "repeat": repeat, **answer}

    return Step(words, measure)


def settings(plan: Plan) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(plan),
        "master": window_batches.MASTER,
        "spark": window_batches.CONF,
        "path_settings": {path: dict(PATH_CONF[path]) for path in plan.paths},
    }


class Ratios(msgspec.Struct, frozen=True):
    """Ratios of one case: of each repeat, and their medians."""

    case: Case
    ratio: tuple[float, ...]
    """Spark over auto: how many times as long Spark takes."""
    choice: tuple[float, ...]
    """Auto over the best path that was forced: what a better choice would have saved."""


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
    return [*made, *headlines(every)]


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
            min, [r.ratio for r in expanding], Goal("at least", 2)),
        *_extreme(
            "headline.ratio_small_min", "Spark over auto, small batches",
            min, [r.ratio for r in small], Goal("at least", 0.9)),
        *_extreme(
            "headline.worst_choice", "auto over the best path, the worst case",
            max, [r.choice for r in goals], Goal("at most", 1.1)),
    ]  # fmt: skip


def _extreme(
    name: str,
    sentence: str,
    pick: Callable[[list[float]], float],
    repeats: Iterable[tuple[float, ...]],
    goal: Goal,
) -> list[Figure]:
    """The least or the greatest of the cases' medians."""
    middles = [value for values in repeats if (value := median(values)) is not None]
    return [Figure(name, "x", sentence, pick(middles), (), goal)] if middles else []


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    summary = [figure for figure in figures if figure.is_summary]
    show_figures(console, f"columnar, medians of {plan.repeats} repeats", summary)
    by_name = {figure.name: figure.value for figure in figures}
    table = bare_table("a batch, and its stage below the shuffle, ms (medians)")
    table.add_column("case")
    for path in plan.paths:
        table.add_column(path, justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("choice", justify="right")
    for case in plan.cases:
        times = (
            _times(by_name, f"{case.name}.{path}_ms_p50", f"{case.name}.{path}_stage_ms_p50")
            for path in plan.paths
        )
        ratios_shown = (_number(by_name.get(f"{case.name}.{key}")) for key in ("ratio", "choice"))
        table.add_row(case.name, *times, *ratios_shown)
    console.print(table)


def _times(by_name: dict[str, float], whole: str, stage: str) -> str:
    if whole not in by_name:
        return "-"
    return f"{by_name[whole]:,.0f} ({by_name.get(stage, 0.0):,.0f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


SUITE: Suite[Plan, Record] = Suite(
    name="columnar",
    plan_of=plan_of,
    steps=lambda plan: 1 + plan.repeats,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=lambda record: record,
    show=show,
)
