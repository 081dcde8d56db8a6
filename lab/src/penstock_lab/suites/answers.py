"""Every query's answer, batch by batch, its driver killed in the middle. No time is measured here.

The queries of one generator run in one driver; the oracle looks after every batch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.errors import BadCall
from penstock_lab import queries as registry
from penstock_lab.experiment.campaigns import fill, fill_side_input
from penstock_lab.experiment.figures import HEADLINE, Figure, Goal
from penstock_lab.experiment.needs import require_campaigns, require_port, require_queries
from penstock_lab.experiment.plan import known
from penstock_lab.experiment.query_sets import key_of
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import figures_table
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.measure import query_groups
from penstock_lab.measure.killed_driver import Answered, Size, Trial
from penstock_lab.measure.query_groups import Group
from penstock_lab.workloads import replay

# Compiling hot code well costs a short run more than it saves.
QUICK = Size(26, 5_000, {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
FULL = Size(40, 25_000, {"spark.driver.memory": "3g"})
Answer: TypeAlias = Callable[[Group, Size, Path, Tell], list[Answered]]


class Skipped(msgspec.Struct, frozen=True):
    """A query that cannot be checked here."""

    subject: str
    why: str


@dataclass(frozen=True)
class Plan:
    """The queries that will be checked, and those that cannot be."""

    queries: tuple[str, ...]
    size: Size
    redis: str
    groups: tuple[Group, ...]
    skipped: tuple[Skipped, ...]


def plan_of(
    *,
    queries: tuple[str, ...] = (),
    quick: bool = False,
    redis: str = "",
    data: Path | None = None,
) -> Plan:
    """The plan of a command line; `data` holds LightSaber's samples, if they are there."""
    refused = "there is no query {}; there is"
    wanted = known(queries, tuple(registry.ALL), refused, "unknown_query") or tuple(registry.ALL)
    groups, skipped = _groups(wanted, redis, replay.samples_folder(data, Path.cwd()))
    return Plan(wanted, QUICK if quick else FULL, redis, groups, skipped)


def _groups(
    wanted: Sequence[str], redis: str, samples: Path
) -> tuple[tuple[Group, ...], tuple[Skipped, ...]]:
    """The groups that can be run, and what is left out of them and why."""
    store, skipped = None, []
    if {"ysb", "q13"} & {*wanted}:
        try:
            require_campaigns(redis)
            store = redis
        except BadCall as error:
            # Q13 joins its side input where it cannot look it up.
            skipped += [Skipped("ysb", error.message)] if "ysb" in wanted else []
    groups = [query_groups.nexmark(store), query_groups.linear_road(), query_groups.cluster()]
    if store is not None:
        groups.append(query_groups.ads(store))
    if {*wanted} & {*registry.LINEAR_ROAD, *registry.CLUSTER}:
        why = replay.missing(samples)
        if why is None:
            groups.append(query_groups.recorded(samples))
        else:
            skipped.append(Skipped(query_groups.REPLAY, why))
    chosen = (group.only(frozenset(wanted)) for group in groups)
    return tuple(group for group in chosen if group.asked), tuple(skipped)


def steps(plan: Plan) -> int:
    """Once for every batch of every stage."""
    return sum(group.stages for group in plan.groups) * plan.size.commits


def require(plan: Plan) -> None:
    require_queries(plan.queries)
    require_port()


def answered(group: Group, size: Size, folder: Path, tell: Tell) -> list[Answered]:
    with Trial(group, size, folder, tell) as trial:
        return trial.run()


def runs(plan: Plan, folder: Path, tell: Tell, answer: Answer = answered) -> Steps[Answered]:
    """A group tells of its batches itself, and gives a record for each of its queries."""
    for group in plan.groups:
        if any("redis" in asked.parameters for asked in group.asked):
            fill(plan.redis, query_groups.SEED)
            fill_side_input(plan.redis)
        place = folder / group.name
        place.mkdir()
        for record in answer(group, plan.size, place, tell):
            yield Step(None, partial(_same, record))
        shutil.rmtree(place, ignore_errors=True)


def _same(record: Answered) -> Answered:
    return record


def settings(plan: Plan) -> dict[str, Any]:
    return {
        "queries": plan.queries,
        "seed": query_groups.SEED,
        **msgspec.to_builtins(plan.size),
        "skipped": msgspec.to_builtins(plan.skipped),
    }


def figures(plan: Plan, records: Sequence[Answered]) -> list[Figure]:
    """Four for every query that was checked, and the two that sum them up."""
    of_queries = []
    for record in records:
        if record.error is None:
            key = key_of(record.query)
            of_queries += [
                Figure(f"{key}.events", "", "events fed", record.events),
                Figure(f"{key}.batches", "", "batches committed", record.batches),
                Figure(f"{key}.rows", "", "rows compared", record.rows),
                Figure(f"{key}.different", "", "rows that differ", record.different),
            ]
    none = Goal("at most", 0)
    wrong = sum(record.different > 0 for record in records)
    failed = sum(record.error is not None for record in records)
    return [
        *of_queries,
        Figure("headline.answers_wrong", "", "queries with a wrong answer", wrong, goal=none),
        Figure("headline.queries_failed", "", "queries that failed", failed, goal=none),
    ]


def show(
    console: Console, plan: Plan, records: Sequence[Answered], figures: Sequence[Figure]
) -> None:
    """The table, every difference and failure in a line of its own, then the headline."""
    console.print(answers_table(records))
    for record in records:
        key = key_of(record.query)
        if record.error is not None:
            console.print(Text(f"failed: {key}: {record.error}", "red"), soft_wrap=True)
        if record.different:
            shown = f"{record.different} of {record.rows} rows differ; the first:"
            console.print(Text(f"wrong: {key}: {shown}", "red"), soft_wrap=True)
            for difference in record.differences:
                console.print(Text(f"  {difference}"), soft_wrap=True)
    for part in plan.skipped:
        sentence = Text(f"{part.subject}: skipped, because {part.why}", "yellow")
        console.print(sentence, soft_wrap=True)
    console.print()
    headline = [figure for figure in figures if figure.name.startswith(HEADLINE)]
    console.print(figures_table("answers, figures", headline))


def answers_table(records: Sequence[Answered]) -> Table:
    table = Table(
        title="answers: every batch against DuckDB, the driver killed in the middle",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
        padding=(0, 0, 0, 0),
        show_edge=False,
    )
    table.add_column("query", no_wrap=True)
    for name in ("events", "batches", "rows", "different", "instance"):
        table.add_column(name, justify="right", no_wrap=True)
    for record in records:
        colour = "" if record.is_right else "red"
        counts = (record.batches, record.rows, record.different, record.instance)
        texts = ["-"] * len(counts) if record.error else [f"{count:,}" for count in counts]
        table.add_row(Text(key_of(record.query), colour), f"{record.events:,}", *texts)
    return table


SUITE: Suite[Plan, Answered] = Suite(
    name="answers",
    plan_of=plan_of,
    steps=steps,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=lambda record: dict(msgspec.to_builtins(record)),
    show=show,
    require=require,
    is_right=lambda record: record.is_right,
    is_shown=lambda plan, records: bool(records or plan.skipped),
)
