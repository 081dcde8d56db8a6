"""The log alone, embedded and in JetStream: append, deliver, read by tag, start, recover.

Backends take turns within a repeat, each in processes and folders of its own; JetStream runs on
three servers, made for the repeat. Figures are medians of the repeats; every ratio is of neighbours
in time, so that a busy minute of the machine falls on both sides.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.testing.nats_servers import NatsServers
from penstock_lab.experiment import jetstream, worker
from penstock_lab.experiment.figures import HEADLINE, Figure, Goal, middle
from penstock_lab.experiment.plot import bars, picture
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import bare_table, figures_table, show_legend
from penstock_lab.experiment.turns import Step, Steps, Tell, rotated
from penstock_lab.experiment.worker import Job
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM, SIZES, WRITERS
from penstock_lab.suites.log_cells import Plan, plan_of, settings
from penstock_lab.suites.log_gateway import gateway_figures, gateway_table

MEASURE = "penstock_lab.measure"
WORKERS = {
    "appends": "log_appends",
    "gateway": "gateway_appends",
    "crowd": "gateway_crowd",
    "deliver": "log_deliveries",
    "tags": "tag_reads",
    "starts": "log_starts",
    "recovery": "task_recovery",
}
RUN_TIMEOUT_S = 1_200.0
TAG_GOAL, START_GOAL, RECOVERY_GOAL, RECOVERY_LOG_GOAL = 0.9, 2.0, 14.0, 300.0
PANELS = (("append_per_s", "appends per second"), ("append_ms_p99", "p99 of one append, ms"))
LEGEND = (
    "writers wait for each answer: in the embedded log synced to disk, in JetStream held by two of "
    "three servers, which sync when their own setting says; medians of the repeats, in brackets "
    "their range"
)
Record: TypeAlias = dict[str, Any]


def require(plan: Plan) -> None:
    if JETSTREAM in plan.backends:
        jetstream.require_servers("--backend embedded")


def runs(plan: Plan, folder: Path, _tell: Tell) -> Steps[Record]:
    numbers = itertools.count(1)

    def step(words: str, kind: str, options: dict[str, Any], about: Record) -> Step[Record]:
        job = Job(kind, str(folder / f"w{next(numbers)}"), options)
        return Step(words, partial(measured, job, about))

    for repeat in range(plan.repeats):
        for backend in rotated(plan.backends[::-1], repeat):
            about = {"backend": backend, "repeat": repeat}
            with log_at(backend, folder / "nats") as log:
                for words, kind, options in plan.repeated(log):
                    words = f"{words} on {backend}, {repeat + 1} of {plan.repeats}"
                    yield step(words, kind, options, about)
    for backend in plan.backends:
        with log_at(backend, folder / "nats") as log:
            for words, kind, options in plan.once(backend):
                about = {"backend": backend}
                yield step(f"{words} on {backend}", kind, {"log": log, **options}, about)


def measured(job: Job, about: Record) -> Record:
    answer = worker.ask_apart(f"{MEASURE}.{WORKERS[job.system]}", job, RUN_TIMEOUT_S)
    return {"measured": job.system, **about, **answer}


@contextlib.contextmanager
def log_at(backend: str, folder: Path) -> Iterator[str]:
    """The address of a log of that kind, with servers of its own if it needs them."""
    if backend == EMBEDDED:
        yield EMBEDDED
        return
    with NatsServers(folder, jetstream.REPLICAS) as servers:
        yield servers.url
    shutil.rmtree(folder)


def figures(plan: Plan, records: Sequence[Record]) -> list[Figure]:
    """Per backend its appends and deliveries; then what sums the log up: the embedded one in the
    headlines, JetStream under its name and without a goal."""
    found = gateway_figures(records)
    for backend in plan.backends:
        mine = [record for record in records if record.get("backend") == backend]
        found += _appends(backend, [one for one in mine if one["measured"] == "appends"])
        found += _deliveries(backend, [one for one in mine if one["measured"] == "deliver"])
    for kind, sum_up in (("tags", _tags), ("starts", _starts), ("recovery", _recovery)):
        for record in records:
            if record["measured"] == kind:
                found += _named(record["backend"], sum_up(plan, record))
    return found


def _appends(backend: str, records: Sequence[Record]) -> list[Figure]:
    found = []
    for size in SIZES:
        for writers in WRITERS:
            name = f"{size}.w{writers}"
            for key, unit, what in (
                ("append_per_s", "/s", "durable appends per second"),
                ("append_ms_p50", "ms", "one durable append, median"),
                ("append_ms_p99", "ms", "one durable append, 99 of 100"),
            ):
                repeats = tuple(float(record[name][key]) for record in records)
                found += middle(f"{backend}.{name}.{key}", unit, what, repeats)
    return found


def _deliveries(backend: str, records: Sequence[Record]) -> list[Figure]:
    found = []
    for key, what in (
        ("deliver_ms_p50", "append to consumed by another process, median"),
        ("deliver_ms_p99", "append to consumed by another process, 99 of 100"),
    ):
        repeats = tuple(float(record[key]) for record in records)
        found += middle(f"{backend}.{key}", "ms", what, repeats)
    return found


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
    found = []
    for key, what in (
        ("large_cold_ms", "process start to first answered append, large log, pages dropped"),
        ("small_cold_ms", "the same, small log"),
        ("large_cold_open_ms", "of that the log's own part, large log"),
        ("small_cold_open_ms", "of that the log's own part, small log"),
    ):
        found += middle(f"start_{key}", "ms", what, tuple(record[key]))
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
        found += middle(name, "x", said, ratios, goal)
    return found


def _recovery(plan: Plan, record: Record) -> list[Figure]:
    what = f"Q8, {plan.recover_s} s of changes at {plan.recover_rate:,} events/s"
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
            "headline.recovery_ratio", "x", f"{what}: without over with checkpoints", ratios,
            Goal("at least", RECOVERY_GOAL),
        ),
    ]  # fmt: skip


def show(
    console: Console, plan: Plan, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Appends of both backends, then everything else with its goal."""
    console.print(appends_table(plan, figures))
    show_legend(console, LEGEND)
    console.print(gateway_table(figures))
    rest = [figure for figure in figures if ".append_" not in figure.name]
    console.print(figures_table("log, figures", rest))
    for figure in rest:
        console.print(f"{figure.name}: {figure.what}", style="dim", soft_wrap=True)


def appends_table(plan: Plan, figures: Sequence[Figure]) -> Table:
    by_name = {figure.name: figure for figure in figures}
    table = bare_table(f"log: durable appends, {plan.repeats} repeats of {plan.append_s:g} s")
    table.add_column("backend, size, writers", no_wrap=True)
    for name in ("per s (repeats)", "ms p50", "ms p99 (repeats)"):
        table.add_column(name, justify="right", no_wrap=True)

    def text(name: str, places: int, *, with_range: bool = True) -> str:
        figure = by_name.get(name)
        if figure is None:
            return "-"
        low, high = (f"{one:,.{places}f}" for one in (min(figure.repeats), max(figure.repeats)))
        return f"{figure.value:,.{places}f}" + (f" ({low}-{high})" if with_range else "")

    for backend in plan.backends:
        table.add_row(Text(backend, "bold"))
        for size, writers in itertools.product(SIZES, WRITERS):
            key = f"{backend}.{size}.w{writers}.append"
            table.add_row(
                f"  {size}, {writers}",
                text(f"{key}_per_s", 0),
                text(f"{key}_ms_p50", 2, with_range=False),
                text(f"{key}_ms_p99", 1),
            )
    return table


def draw(plan: Plan, records: Sequence[Record], figures: Sequence[Figure], path: Path) -> None:
    """Appends per second and their time, a group of bars per size, a colour per backend."""
    by_name = {figure.name: figure for figure in figures}
    groups = [f"{size}.w{writers}" for writers in WRITERS for size in SIZES]
    with picture(path, "", plan.backends, (1, len(PANELS)), (11.0, 3.6), 0.0) as (axes, colours):
        for axis, (key, words) in zip(axes[0], PANELS, strict=True):
            series = {
                backend: [by_name.get(f"{backend}.{group}.{key}") for group in groups]
                for backend in plan.backends
            }
            bars(axis, words, groups, series, colours)
        axes[0][0].legend(frameon=False, fontsize=8)


SUITE: Suite[Plan, Record] = Suite(
    name="log",
    plan_of=plan_of,
    steps=lambda plan: plan.steps,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=lambda record: record,
    show=show,
    draw=draw,
    require=require,
)
