"""`penstock consumers`: who reads which stream, who stays away, and letting go of one."""

from __future__ import annotations

import sys
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from penstock.cli.address import client_of, server_options
from penstock.cli.measures import age
from penstock.cli.positions import PositionText, position_of
from penstock.model.answers import ConsumerDescription

COLUMNS = ("reader", "name", "stream", "position", "rows behind", "heard of", "state")


@click.group()
def consumers() -> None:
    """List, move and forget those who read streams: groups (penstock.consume) and queries.

    The log keeps what a consumer has not dealt with. One that has not been heard of for
    consumer_away_ms_max (seven days, unless `penstock serve --set` says otherwise) is shown as
    away, and is no longer waited for.

    \b
    Examples:
      penstock consumers list
      penstock consumers move mailer bids --to latest
      penstock consumers forget mailer
    """


@consumers.command("list")
@click.option("--away", is_flag=True, help="Only those that stay away, the longest first.")
@server_options
def list_consumers(away: bool, **server: Any) -> None:
    """List every consumer: its position, the rows behind it, and whether it is away.

    State is `here`, `away` and for how long (not waited for any more), or `trimmed` (rows it had
    not read are gone).
    """
    client = client_of(**server)
    listed = client.consumers(away=away)
    if not listed and away:
        click.echo("no consumer stays away", err=True)
        return
    if not listed:
        click.echo("no consumers; penstock.consume and queries register themselves", err=True)
        return
    table = Table(*COLUMNS, show_edge=False, pad_edge=False)
    now_ms = client.server().now_ms
    for consumer in listed:
        state = _state(consumer, now_ms)
        values = (
            consumer.reader,
            consumer.name,
            consumer.stream,
            str(consumer.position),
            str(consumer.rows_behind),
            f"{age(max(0, now_ms - consumer.heard_at_ms))} ago",
            state,
        )
        if sys.stdout.isatty():
            table.add_row(*values)
        else:
            click.echo("\t".join(values))
    if sys.stdout.isatty():
        Console().print(table)


def _state(consumer: ConsumerDescription, now_ms: int) -> str:
    words = ["trimmed"] if consumer.is_trimmed else []
    if consumer.away_since_ms is not None:
        words.append(f"away for {age(max(0, now_ms - consumer.away_since_ms))}")
    return ", ".join(words) or "here"


@consumers.command()
@click.argument("group")
@click.argument("stream")
@click.option(
    "--to", "target", required=True, type=PositionText(), help="earliest, latest, or a position."
)
@server_options
def move(group: str, stream: str, target: str, **server: Any) -> None:
    """Move a group that is not running to another position: back to read again, or on to skip.

    A group of that name is made if there is none, so this is also how to begin elsewhere than at
    the earliest position, and how to hold a stream before its first reader starts.

    \b
    Example: penstock consumers move mailer bids --to 1234
    """
    client = client_of(**server)
    position = position_of(client, stream, target)
    client.register(group, stream, position)
    client.move(group, {stream: (position, None)})
    click.echo(f"the group {group} goes on after position {position} of {stream}")


@consumers.command()
@click.argument("group")
@click.option("--stream", help="Only in this stream; else in all.")
@server_options
def forget(group: str, stream: str | None, **server: Any) -> None:
    """Hold nothing for a group any more. If it comes back it begins anew.

    \b
    Example: penstock consumers forget mailer
    """
    streams = client_of(**server).forget(group, stream)
    click.echo(f"nothing is held for {group} any more in {', '.join(streams)}")
