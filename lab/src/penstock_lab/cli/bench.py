"""`penstock bench SUITE`: measures this machine, checks the answers, prints a table."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from penstock_lab.cli.bench_options import (
    COMPARED,
    FOLDER,
    JSON,
    QUICK,
    REDIS,
    REPEATS,
    STORE,
    option,
    place,
    plot,
    rate,
    several,
    step_teller,
)
from penstock_lab.processes import end_on_sigterm

QUERY = several("--query", "queries")
SECONDS = option("--seconds", type=float, help="How long each run is measured.")
LOG = option("--log", default="jetstream", show_default=True, help="Or embedded.")


@dataclass(frozen=True)
class Description:
    """A suite on the command line; its module is imported when it is run."""

    module: str
    line: str
    options: Sequence[click.Option]
    """Those of its plan, and where the result goes."""


SUITES = {
    "floor": Description(
        "floor",
        "What the log adds to the least a stateful micro-batch can cost, and where that goes.",
        (
            QUICK,
            JSON,
            several(
                "--query", "queries", "floor, cm_category or lr_join; may be repeated.  [floor]"
            ),
            several(
                "--without",
                "without",
                "Run every query without this mechanism too; may be repeated. There are "
                "hadoopConf, switches, watermark, eviction, panes, inline, commit, localFiles; a "
                "setting of Spark's own by its name; and each-switch, which is all of those.",
            ),
            several(
                "--with",
                "with_also",
                "Run every query with this mechanism too, which is off by default: earlyAnswers.",
            ),
            REPEATS,
            FOLDER,
        ),
    ),
    "nexmark": Description(
        "compared",
        "NEXMark's auctions and bids: stateless, joined, windowed and updating queries.",
        COMPARED,
    ),
    "linearroad": Description(
        "compared", "Linear Road's position reports: a windowed self-join and aggregates.", COMPARED
    ),
    "cluster": Description(
        "compared",
        "Task events of a compute cluster: windowed aggregates, one of them sorted.",
        COMPARED,
    ),
    "ysb": Description(
        "compared",
        "The Yahoo benchmark: ad views per campaign, campaigns looked up in Redis.",
        (*COMPARED, REDIS),
    ),
    "sustain": Description(
        "sustain",
        "The highest rate at which a query's latency does not keep rising.",
        (
            QUICK,
            JSON,
            several("--query", "queries", "Which; may be repeated.  [q1, q18]"),
            several("--system", "chosen", "Which; may be repeated."),
            rate("The highest rate to try."),
            STORE,
            FOLDER,
        ),
    ),
    "commit": Description(
        "commit",
        "What it saves a batch that its commit follows behind, step by step as in the paper.",
        (
            QUICK,
            JSON,
            plot("Draw the batches here."),
            QUERY,
            rate("Events per second.  [2500]"),
            several("--store", "stores"),
            several("--system", "chosen"),
            FOLDER,
        ),
    ),
    "deadlines": Description(
        "deadlines",
        "Three queries at once on two cores: deadlines against fixed triggers and none.",
        (
            QUICK,
            JSON,
            plot("Draw latencies here."),
            several("--mode", "modes"),
            several("--deadline", "deadlines_s", "In seconds; may be repeated.", type=float),
            several(
                "--traffic",
                "traffics",
                "high, low, constant_high or constant_low; may be repeated.  "
                "[quick: high; full: all]",
            ),
            rate("Of high traffic; it is not looked for then."),
            SECONDS,
            FOLDER,
        ),
    ),
    "bounded": Description(
        "bounded",
        "Latency over many minutes, windows that slide or tumble, against a trigger of 10 s.",
        (
            QUICK,
            JSON,
            plot("Draw batches over time here."),
            QUERY,
            rate("Events per second.  [1000]"),
            SECONDS,
            FOLDER,
        ),
    ),
    "columnar": Description(
        "columnar",
        "Batches over sliding windows on every path they can take, and on the one chosen.",
        (QUICK, JSON, QUERY, FOLDER),
    ),
    "devices": Description(
        "devices",
        "Operations on CPU and GPU, and workloads planned for both; needs a GPU.",
        (
            QUICK,
            JSON,
            several(
                "--part",
                "parts",
                "Only this one; may be repeated; spark is latency and rates.  "
                "[operations, inflection, latency, rates]",
            ),
            several("--workload", "workloads", "Only this one, on Spark; may be repeated."),
            several("--mode", "modes"),
            option("--minutes", "minutes_max", type=float, help="Begin no run that may end later."),
            several(
                "--merge",
                "merged",
                "Take in the runs of this result; may be repeated. Measures named parts only.",
                type=click.Path(path_type=Path, exists=True, dir_okay=False),
            ),
            FOLDER,
        ),
    ),
    "prefetch": Description(
        "prefetch",
        "State read before its row arrives: prefetching against caches and asynchronous reads.",
        (
            QUICK,
            JSON,
            plot("Draw latencies and moves of the controller here."),
            QUERY,
            several("--mode", "modes"),
            several("--reads", "reads", "Only these; may be repeated.  [read1ms, direct]"),
            several(
                "--part",
                "parts",
                "Only this one; may be repeated.  [rates, overhead, adaptation, skews, caches, "
                "thresholds, ablation]",
            ),
            rate("Of all runs; it is not looked for then."),
            REDIS,
            FOLDER,
        ),
    ),
    "recovery": Description(
        "recovery",
        "Kill -9 of driver, executor and server: the time to the first new marker.",
        (
            QUICK,
            JSON,
            several(
                "--kill",
                "kills",
                type=click.Choice(["driver.cold", "driver.warm", "server", "executor"]),
            ),
            option("--repeats", type=click.IntRange(1), help="In place of 3 quick, 10 in full."),
            FOLDER,
        ),
    ),
    "log": Description(
        "log",
        "The log alone, embedded and in JetStream: append, deliver, read by tag, start, recover.",
        (
            QUICK,
            JSON,
            plot("Draw appends here."),
            several("--backend", "backends", type=click.Choice(["embedded", "jetstream"])),
            FOLDER,
        ),
    ),
    "protocols": Description(
        "protocols",
        "Progress markers against transactions, aligned checkpoints and no protocol at all.",
        (
            QUICK,
            JSON,
            plot("Draw latencies here."),
            QUERY,
            several("--protocol", "chosen"),
            several(
                "--interval",
                "intervals_ms",
                "Commit every so many milliseconds; may be repeated.  [100, 50, 25, 10]",
                type=click.IntRange(min=1),
            ),
            rate(),
            several("--level", "levels", "Only this one.  [log]", type=click.Choice(["log"])),
            LOG,
            FOLDER,
        ),
    ),
    "paper": Description(
        "paper",
        "Asynchronous commit and progress markers under the conditions of their papers.",
        (
            QUICK,
            JSON,
            plot("Draw batches and latencies here."),
            several("--paper", "papers_asked", "misa or impeller; may be repeated.  [both]"),
            several("--query", "queries", "CM1 or LR2; may be repeated.  [both]"),
            several("--system", "chosen"),
            option("--seconds", type=click.FloatRange(1), help="Of a graph.  [180; quick: 12]"),
            LOG,
            FOLDER,
        ),
    ),
    "answers": Description(
        "answers",
        "Every query's answer, batch by batch, its driver killed in the middle.",
        (
            option("--quick", is_flag=True, help="130,000 events in place of 1,000,000."),
            JSON,
            QUERY,
            REDIS,
            option(
                "--data",
                type=click.Path(path_type=Path),
                envvar="PENSTOCK_TEST_DATA",
                help="The folder that holds lightsaber/, for the replay.  [PENSTOCK_TEST_DATA]",
            ),
            FOLDER,
        ),
    ),
}


def suite_named(name: str) -> Any:
    """The suite itself, which takes its module and what that needs."""
    module = importlib.import_module(f"penstock_lab.suites.{SUITES[name].module}")
    return module.SUITES[name] if hasattr(module, "SUITES") else module.SUITE


def run_suite(
    name: str,
    *,
    json_file: Path | None,
    folder: Path | None,
    plot_file: Path | None = None,
    **options: Any,
) -> None:
    from penstock_lab.experiment.result import Outlet
    from penstock_lab.experiment.run import run

    end_on_sigterm()
    suite = suite_named(name)
    plan = suite.plan_of(**options)
    steps = suite.steps(plan)
    console = Console(highlight=False)
    if suite.minutes is not None and steps:
        minutes = suite.minutes(plan)
        console.print(f"{steps} runs, about {minutes:.0f} minutes on quiet cores")
    with step_teller(console, steps) as (tell, done):
        outlet = Outlet(console, json_file, plot_file, done)
        is_right = run(suite, plan, place(folder), tell, outlet)
    if not is_right:
        raise SystemExit(1)


class Suites(click.Group):
    """Suites by name; a wrong one is answered with those there are."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUITES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUITES:
            return None
        described = SUITES[cmd_name]
        callback = partial(run_suite, cmd_name)
        params: list[click.Parameter] = list(described.options)
        return click.Command(cmd_name, callback=callback, params=params, help=described.line)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Suites"):
            formatter.write_dl([(name, each.line) for name, each in SUITES.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in SUITES:
            raise click.UsageError(
                f"there is no suite {args[0]!r}; there is {', '.join(SUITES)}", ctx
            )
        return super().resolve_command(ctx, args)


@click.group(cls=Suites)
def bench() -> None:
    """Measure this machine: what is compared runs in the same command, on the same input.

    Every run's answer is checked too; a wrong one ends the benchmark with exit code 1.
    """
