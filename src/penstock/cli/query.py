"""`penstock query`: the queries a log knows, starting one over, letting go of it, its deadline."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.address import client_of, server_options
from penstock.model.durations import parse_duration


@click.group()
def query() -> None:
    """List, reset and delete queries, and change the deadline of a running one.

    A query is known to the log by its id, which Spark keeps in the checkpoint location.

    \b
    Examples:
      penstock query list
      penstock query reset 6a7ff1d2-...
      penstock query delete 6a7ff1d2-...
      penstock query deadline hot_items 800ms
    """


@query.command("list")
@server_options
def list_queries(**server: Any) -> None:
    """List the queries: id, name, instance, and the last batch that is marked."""
    queries = client_of(**server).queries()
    if not queries:
        click.echo("no queries yet", err=True)
    for record in queries:
        marker = record.marker
        batch = "no batch" if marker is None else f"batch {marker.batch}"
        instance = f"instance {record.instance}"
        click.echo("\t".join([record.query, record.name or "-", instance, batch]))


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


@query.command()
@click.argument("query_name", metavar="QUERY")
@click.argument("duration", metavar="DURATION")
@server_options
def deadline(query_name: str, duration: str, **server: Any) -> None:
    """Give a running query, by its name or id, another deadline.

    It is in force from the next decision on, also for a batch that is waited for now. DURATION is
    such as 800ms or 2s; `own` takes back what was set here, so that the query's own counts. It is
    kept in the memory of the server: one that is started anew knows the query's own.

    \b
    Examples:
      penstock query deadline hot_items 800ms
      penstock query deadline hot_items own
    """
    deadline_ms = None if duration == "own" else parse_duration(duration, "deadline")
    answer = client_of(**server).set_deadline(query_name, deadline_ms)
    in_force = "no deadline" if answer.deadline_ms is None else f"{answer.deadline_ms:g} ms"
    click.echo(f"query {answer.name or answer.query}: {in_force}")
    if answer.warning is not None:
        click.echo(f"warning: {answer.warning}", err=True)
