"""`penstock stream`: everything a stream does, from a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from penstock.cli.address import client_of, server_options
from penstock.cli.feed import FORMATS, format_of, pieces
from penstock.cli.show import json_lines, output, show, write
from penstock.errors import PenstockError


@click.group()
def stream() -> None:
    """Create, list, append to and read streams.

    \b
    Examples:
      penstock stream create bids "auction bigint, price double, at timestamp"
      penstock stream append bids bids.csv
      tail -f app.jsonl | penstock stream append events - --format jsonl
      penstock stream read bids --format csv -o bids.csv
      penstock stream tail bids --from earliest
    """


@stream.command()
@click.argument("name")
@click.argument("ddl")
@click.option("--substreams", type=click.IntRange(1), help="How many parts it is split into.")
@click.option("--key", metavar="COLUMNS", help="Rows equal in these keep their order: a,b.")
@server_options
def create(name: str, ddl: str, substreams: int | None, key: str | None, **server: Any) -> None:
    """Create a stream; one with the same schema may be there already.

    \b
    Example: penstock stream create bids "auction bigint, at timestamp" --key auction
    """
    keys = [one.strip() for one in key.split(",")] if key else None
    made = client_of(**server).create(name, ddl, substreams=substreams, key=keys)
    click.echo(f"{made.name}: {made.ddl}; {made.substreams} substreams")


@stream.command("list")
@server_options
def list_streams(**server: Any) -> None:
    """List the streams: their rows, bytes, positions and columns."""
    streams = client_of(**server).streams()
    if not streams:
        click.echo("no streams yet; make one with: penstock stream create NAME DDL", err=True)
        return
    columns = ("name", "rows", "bytes", "substreams", "earliest", "latest", "columns")
    table = Table(*columns, show_edge=False, pad_edge=False)
    for one in streams:
        counts = (one.rows, one.bytes, one.substreams, one.earliest, one.latest)
        values = (one.name, *(str(count) for count in counts), one.ddl)
        if sys.stdout.isatty():
            table.add_row(*values)
        else:
            click.echo("\t".join(values))
    if sys.stdout.isatty():
        Console().print(table)


@stream.command()
@click.argument("name")
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--format", "kind", type=click.Choice(list(FORMATS)), help="Else by file name.")
@click.option("--key", metavar="COLUMNS", help="Route by these instead of the stream's key.")
@click.option("--substream", type=click.IntRange(0), help="Put all rows here.")
@server_options
def append(
    name: str, file: Any, kind: str | None, key: str | None, substream: int | None, **server: Any
) -> None:
    """Append the rows of FILE, or of standard input.

    A large file becomes several commits; when one fails, the ones before it stay, and the message
    says how many rows those were.
    """
    path = file.name if isinstance(getattr(file, "name", None), str) else "-"
    found = format_of("-" if path == "<stdin>" else path, kind)
    client = client_of(**server)
    rows, position = 0, None
    try:
        for piece in pieces(file, found):
            done = client.append_bytes(
                name, piece.body, piece.content_type, key=key, substream=substream
            )
            rows, position = rows + done.rows, done.position
    except PenstockError as error:
        if rows == 0:
            raise
        raise click.ClickException(
            f"{rows} rows were appended, up to position {position}; then: {error.message}"
        ) from error
    click.echo(f"appended {rows} rows" + (f", position {position}" if rows else ""), err=True)


@stream.command()
@click.argument("name")
@click.option("--after", type=click.IntRange(0), help="Position to start after; else earliest.")
@click.option("--until", type=click.IntRange(0), help="Position to end at; else latest.")
@click.option("--substream", type=click.IntRange(0), help="Only this one.")
@click.option("--format", "kind", type=click.Choice(["table", "json", "csv", "arrow"]))
@click.option("-o", "target", type=click.Path(dir_okay=False, path_type=Path), help="To a file.")
@server_options
def read(
    name: str,
    after: int | None,
    until: int | None,
    substream: int | None,
    kind: str | None,
    target: Path | None,
    **server: Any,
) -> None:
    """Print the rows: a table on a terminal, JSON lines in a pipe or a file."""
    client = client_of(**server)
    schema = client.schema(name)
    batches = client.scan(name, after, until, substream=substream)
    kind = kind or ("table" if target is None and sys.stdout.isatty() else "json")
    if kind == "table":
        if target is None:
            show(Console(), schema, batches)
        else:
            with target.open("w", encoding="utf-8") as text:
                show(Console(file=text), schema, batches)
        return
    with output(target) as out:
        write(out, kind, schema, batches)


@stream.command()
@click.argument("name")
@click.option("--from", "start", default="latest", help="earliest, latest, or a position.")
@click.option("--substream", type=click.IntRange(0), help="Only this one.")
@server_options
def tail(name: str, start: str, substream: int | None, **server: Any) -> None:
    """Print rows as they are committed, as JSON lines, until Ctrl-C."""
    client = client_of(**server)
    if start.isdigit():
        after = int(start)
    elif start in ("earliest", "latest"):
        after = client.position(name, at=start)
    else:
        raise click.BadParameter("give earliest, latest, or a position", param_hint="--from")
    for rows, _ in client.follow(name, after, substream=substream):
        sys.stdout.buffer.write(json_lines(rows))
        sys.stdout.buffer.flush()
