"""The command group: each command is imported when it is used, so that --help is instant."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata

import click

from penstock.errors import BadCall, PenstockError
from penstock.model.no_pandas import leave_out_pandas

# name: (module, attribute, one line for --help); in the order of a first day with Penstock.
COMMANDS = {
    "doctor": ("penstock.cli.doctor", "doctor", "Check what Penstock needs, and say what to do."),
    "serve": ("penstock.cli.serve", "serve", "Run the server: the log and its gateway."),
    "stream": ("penstock.cli.stream", "stream", "Create, list, alter, append to, read streams."),
    "consumers": ("penstock.cli.consumers", "consumers", "See and move those who read streams."),
    "query": ("penstock.cli.query", "query", "List, reset, delete queries; set a deadline."),
    "explain": ("penstock.cli.explain", "explain", "Say why a query's batches were cut when."),
    "run": ("penstock.cli.run", "run", "Run a PySpark job, and start it again when it fails."),
    "simulate": (
        "penstock.cli.simulate",
        "simulate",
        "Try deadlines on a model of a cluster, without Spark.",
    ),
    "calibrate": (
        "penstock.cli.calibrate",
        "calibrate",
        "Measure what operations cost on this machine.",
    ),
    "archive": (
        "penstock.cli.archive",
        "archive",
        "Lay out Spark's classes once: drivers start sooner.",
    ),
    "drain": ("penstock.cli.drain", "drain", "Copy a query's checkpoint out of the log."),
    "backup": ("penstock.cli.backup", "backup", "Copy the log of a running server."),
    "restore": ("penstock.cli.backup", "restore", "Make a data folder from a backup."),
}


# Commands of the laboratory, a distribution of its own, which registers them under GROUP.
LAB_COMMANDS = {
    "demo": "Run the whole system on this machine, once (penstock-lab).",
    "bench": "Measure this machine, and check the answers too (penstock-lab).",
}
GROUP = "penstock.commands"


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one only when it is run.

    Other distributions add commands by an entry point of the group `penstock.commands`.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *LAB_COMMANDS, *sorted(_added_commands() - LAB_COMMANDS.keys())]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, attribute, _ = COMMANDS[cmd_name]
            command = getattr(importlib.import_module(module), attribute)
        elif cmd_name in _added_commands():
            (entry_point,) = metadata.entry_points(group=GROUP, name=cmd_name)
            command = entry_point.load()
        elif cmd_name in LAB_COMMANDS:
            raise BadCall(
                f"'penstock {cmd_name}' is a command of the laboratory, which is not installed "
                "here; install it with: pip install penstock-lab (in a checkout: make env)",
                code="no_lab",
            )
        else:
            return None
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        lines = {name: line for name, (_, _, line) in COMMANDS.items()} | LAB_COMMANDS
        with formatter.section("Commands"):
            formatter.write_dl([(name, lines.get(name, "")) for name in self.list_commands(ctx)])


def _added_commands() -> set[str]:
    return {entry_point.name for entry_point in metadata.entry_points(group=GROUP)}


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="penstock", message="penstock %(version)s")
def penstock() -> None:
    """Spark Structured Streaming that keeps a latency promise and shows each result exactly once.

    \b
    See it run, then check the machine:
      penstock demo
      penstock doctor

    \b
    A server, a stream, and rows in and out (the server's address and token are found in
    ./penstock-data, or taken from PENSTOCK_URL and PENSTOCK_TOKEN):
      penstock serve --data penstock-data &
      penstock stream create bids "auction bigint, price double, at timestamp" --key auction
      penstock stream append bids bids.jsonl
      penstock stream read bids
      penstock stream tail bids

    \b
    From Python:
      import penstock
      spark = penstock.session("local[2]")
      bids = spark.readStream.format("penstock").load("bids")
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0, 1 with one sentence on stderr, or 2 for a wrong call."""
    if args is None and sys.argv[1:] and sys.argv[1] in COMMANDS:
        leave_out_pandas()
    try:
        code = penstock.main(
            args=list(args) if args is not None else None,
            prog_name="penstock",
            standalone_mode=False,
        )
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(0)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our pipe has seen enough; Python must not complain about it at exit.
        sys.stderr.close()
        sys.exit(0)
    except PenstockError as error:
        _say(error.message)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


def _say(sentence: str) -> None:
    # Half of what `penstock serve` would wait for here before its own imports.
    from rich.console import Console

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        "error: ", sentence, markup=False, sep=""
    )
