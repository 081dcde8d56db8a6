"""`penstock drain`: copies a query's checkpoint out of the log, so that Spark alone can go on."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import click

from penstock.checkpoint.drain import batches, identify, put_offsets
from penstock.checkpoint.location import Location, path_of
from penstock.checkpoint.state import put_state
from penstock.cli.address import client_of, server_options


@click.command()
@click.argument("checkpoint_folder")
@click.option("--query", metavar="ID", help="The query's id, if the location has no metadata file.")
@server_options
def drain(checkpoint_folder: str, query: str | None, **server: Any) -> None:
    """Bring a checkpoint location up to the query's last marker, from the log.

    Afterwards plain Spark, without Penstock's jar, continues from the location. Stop the query
    first: a run that is still alive is fenced and ends with an error. Running this twice is safe.

    \b
    Example:
      penstock drain checkpoints/hot_items --data penstock-data
    """
    location = Location(path_of(checkpoint_folder))
    client = client_of(**server)
    found = identify(location, query, client)
    taken = client.take_over(found, f"drain-{uuid4()}")
    click.echo(f"query {found}: taken over as instance {taken['instance']}")
    copied = 0
    for batch in batches(client, found, location):
        click.echo(str(batch))
        copied += batch.written_bytes
    last = location.last_commit()
    marker = taken["marker"]
    if last is None:
        click.echo(f"{location.folder} has no committed batch, and neither has the log")
    elif marker is None or marker["batch"] < last:
        marked = "none" if marker is None else f"batch {marker['batch']}"
        click.echo(
            f"{location.folder} is ahead of the log: it has batch {last}, marked is {marked}"
        )
    else:
        click.echo(f"{location.folder} has every batch up to {last}; copied {copied} bytes")
    for said in (put_state(client, found, location), put_offsets(client, found, location, last)):
        if said is not None:
            click.echo(said)
