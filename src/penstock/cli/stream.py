"""`penstock stream`: everything a stream does, from a shell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from penstock.cli.address import client_of, server_options
from penstock.cli.measures import Size, Span, age
from penstock.cli.positions import PositionText, position_of
from penstock.cli.show import json_lines, output, show, write
from penstock.client import Stream
from penstock.client.file_pieces import FORMATS, format_of, pieces
from penstock.errors import PenstockError


@click.group()
def stream() -> None:
    """Create, list, alter, append to and read streams.

    \b
    Examples:
      penstock stream create bids "auction bigint, price double, at timestamp"
      penstock stream append bids bids.csv
      tail -f app.jsonl | penstock stream append events - --format jsonl
      penstock stream read bids --format csv -o bids.csv
      penstock stream tail bids --from earliest
      penstock stream alter bids --add "note string" --keep 7d
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
    keys = [column.strip() for column in key.split(",")] if key else None
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
    for each in streams:
        counts = (each.rows, each.bytes, each.substreams, each.earliest, each.latest)
        values = (each.name, *(str(count) for count in counts), each.ddl)
        if sys.stdout.isatty():
            table.add_row(*values)
        else:
            click.echo("\t".join(values))
    if sys.stdout.isatty():
        Console().print(table)


@stream.command()
@click.argument("name")
@click.option(
    "--add", metavar="DDL", help='Columns to put at the end: "note string, at timestamp".'
)
@click.option("--substreams", type=click.IntRange(1), help="More parts than it has.")
@click.option(
    "--keep", type=Span(), help="How long rows stay while nobody is registered: 7d, ever."
)
@click.option("--keep-size", type=Size(), help="And how much at least: 10GB, all.")
@server_options
def alter(
    name: str,
    add: str | None,
    substreams: int | None,
    keep: int | None,
    keep_size: int | None,
    **server: Any,
) -> None:
    """Change a stream while it is in use.

    Columns are added at the end; rows from before have null there. A writer that does not know a
    new column leaves it null, and a reader that does not know it is not given it, until it starts
    again. Substreams are only ever added; rows stay where they are, and no batch of a query spans
    the change. Whatever would lose data, such as dropping or narrowing a column, is refused.

    Rows of a stream that someone is registered to read (penstock consumers list) are kept until
    everyone has dealt with them. --keep and --keep-size are for a stream that nobody is.

    \b
    Examples:
      penstock stream alter bids --add "note string"
      penstock stream alter bids --substreams 8
      penstock stream alter bids --keep 7d --keep-size 10GB
    """
    if (add, substreams, keep, keep_size) == (None, None, None, None):
        raise click.UsageError("say what to change: --add, --substreams, --keep or --keep-size")
    altered = client_of(**server).alter(
        name, add=add, substreams=substreams, age_ms_max=keep, bytes_max=keep_size
    )
    click.echo(f"{altered.name}: {altered.ddl}; {altered.substreams} substreams; {_kept(altered)}")


def _kept(stream: Stream) -> str:
    bounds = [
        f"for {age(stream.age_ms_max)}" if stream.age_ms_max is not None else "",
        f"down to {stream.bytes_max} bytes" if stream.bytes_max is not None else "",
    ]
    return f"unread rows are kept {' or '.join(each for each in bounds if each) or 'for ever'}"


@stream.command()
@click.argument("name")
@click.option("--until", type=click.IntRange(0), required=True, help="The last position to go.")
@server_options
def trim(name: str, until: int, **server: Any) -> None:
    """Remove rows up to a position now; refused if a consumer or query still needs them.

    \b
    Example: penstock stream trim bids --until 12345
    """
    done = client_of(**server).trim(name, until)
    click.echo(f"{name}: trimmed up to {done.until}, {done.entries} entries removed")


@stream.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Though somebody uses it; who reads it gets an error.")
@server_options
def delete(name: str, force: bool, **server: Any) -> None:
    """Delete a stream and its rows; refused while a consumer or query uses it.

    \b
    Example: penstock stream delete bids
    """
    client_of(**server).delete_stream(name, force=force)
    click.echo(f"{name} is deleted")


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
    file_format = format_of("-" if path == "<stdin>" else path, kind)
    client = client_of(**server)
    rows, position = 0, None
    try:
        for piece in pieces(file, file_format):
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
@click.option(
    "--from",
    "start",
    default="latest",
    type=PositionText(),
    help="earliest, latest, or a position.",
)
@click.option("--substream", type=click.IntRange(0), help="Only this one.")
@server_options
def tail(name: str, start: str, substream: int | None, **server: Any) -> None:
    """Print rows as they are committed, as JSON lines, until Ctrl-C."""
    client = client_of(**server)
    after = position_of(client, name, start)
    for rows, _ in client.follow(name, after, substream=substream):
        sys.stdout.buffer.write(json_lines(rows))
        sys.stdout.buffer.flush()
