"""`penstock bench SUITE`: measures this machine, checks the answers, prints a table."""

from __future__ import annotations

import importlib

import click

# name: (module, one line for --help). A suite is a command of its own name in its module.
SUITES = {
    "floor": (
        "penstock_lab.cli.bench_floor",
        "What the log adds to the least a stateful micro-batch can cost.",
    ),
    "nexmark": (
        "penstock_lab.cli.bench_compared",
        "NEXMark's auctions and bids: stateless, joined, windowed and updating queries.",
    ),
    "linearroad": (
        "penstock_lab.cli.bench_compared",
        "Linear Road's position reports: a windowed self-join and aggregates.",
    ),
    "cluster": (
        "penstock_lab.cli.bench_compared",
        "Task events of a compute cluster: windowed aggregates, one of them sorted.",
    ),
    "ysb": (
        "penstock_lab.cli.bench_compared",
        "The Yahoo benchmark: ad views per campaign, campaigns looked up in Redis.",
    ),
    "sustain": (
        "penstock_lab.cli.bench_sustain",
        "The highest rate at which a query's latency does not keep rising.",
    ),
    "commit": (
        "penstock_lab.cli.bench_commit",
        "What it saves a batch that its commit follows behind, step by step as in the paper.",
    ),
    "log": (
        "penstock_lab.cli.bench_log",
        "The log alone, embedded and in JetStream: append, deliver, read by tag, start, recover.",
    ),
    "protocols": (
        "penstock_lab.cli.bench_protocols",
        "Progress markers against transactions, aligned checkpoints and no protocol at all.",
    ),
    "answers": (
        "penstock_lab.cli.bench_answers",
        "Every query's answer, batch by batch, its driver killed in the middle.",
    ),
}


class Suites(click.Group):
    """Suites by name, imported when run; a wrong one is answered with those there are."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUITES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUITES:
            return None
        module, line = SUITES[cmd_name]
        found = getattr(importlib.import_module(module), cmd_name)
        assert isinstance(found, click.Command)
        found.help = found.help or line
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Suites"):
            formatter.write_dl([(name, line) for name, (_, line) in SUITES.items()])

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
