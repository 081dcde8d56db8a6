"""`penstock query`: the queries a log knows, and starting one over or letting go of it."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.address import client_of, server_options


@click.group()
def query() -> None:
    """List, reset and delete queries.

    A query is known to the log by its id, which Spark keeps in the checkpoint location.

    \b
    Examples:
      penstock query list
      penstock query reset 6a7ff1d2-...
      penstock query delete 6a7ff1d2-...
    """


@query.command("list")
@server_options
def list_queries(**server: Any) -> None:
    """List the queries: id, name, instance, and the last batch that is marked."""
    queries = client_of(**server).queries()
    if not queries:
        click.echo("no queries yet", err=True)
    for record in queries:
        marker = record["marker"]
        batch = "no batch" if marker is None else f"batch {marker['batch']}"
        instance = f"instance {record['instance']}"
        click.echo("\t".join([record["query"], record["name"] or "-", instance, batch]))


@query.command()
@click.argument("query_id", metavar="ID")
@server_options
def reset(query_id: str, **server: Any) -> None:
    """Let a query begin again at batch 0, with an empty checkpoint location.

    A run that is still alive is fenced and ends with an error. What the query has made visible
    stays: a query that reads its input again writes its output again, so give it a new output
    stream, or delete the old one, unless that is what you want. Its inputs are no longer held for
    it until it starts.

    \b
    Example:
      penstock query reset 6a7ff1d2-... && rm -r checkpoints/hot_items/{offsets,commits,state}
    """
    instance = client_of(**server).reset_query(query_id)
    click.echo(
        f"query {query_id}: fenced as instance {instance}, its batches are forgotten; empty its "
        "checkpoint location before you start it"
    )


@query.command()
@click.argument("query_id", metavar="ID")
@server_options
def delete(query_id: str, **server: Any) -> None:
    """Forget a query: its markers, its checkpoint files in the log, what it never committed.

    What it made visible stays. A run that is still alive ends with an error at its next step. Its
    inputs are no longer held for it.

    \b
    Example: penstock query delete 6a7ff1d2-...
    """
    client_of(**server).delete_query(query_id)
    click.echo(f"query {query_id} is forgotten")
