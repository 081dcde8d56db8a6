"""`penstock drain`: copies a query's checkpoint out of the log, so that Spark alone can go on."""

from __future__ import annotations

from typing import Any

import click

from penstock.checkpoint.drain import drain as drain_query
from penstock.checkpoint.location import Location, path_of
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
    for sentence in drain_query(Location(path_of(checkpoint_folder)), query, client_of(**server)):
        click.echo(sentence)
