"""`penstock coordinate`: the coordinator of queries that commit with transactions."""

from __future__ import annotations

import asyncio

import click

from penstock.client import Client
from penstock_lab.baselines.spark_transactions.app import serve


@click.command()
@click.option("--url", envvar="PENSTOCK_URL", required=True, help="The log server.")
@click.option("--token", envvar="PENSTOCK_TOKEN", required=True, help="Its token, and this one's.")
@click.option("--ca", envvar="PENSTOCK_CA", help="PEM file of the server's authority.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0 takes a free one.")
def coordinate(url: str, token: str, ca: str | None, port: int) -> None:
    """Coordinate transactions of queries, to compare them with markers.

    For queries with spark.penstock.commit.protocol=transaction and
    spark.penstock.coordinator.url set to the address this prints. Markers need no coordinator.
    """
    with Client(url, token, ca) as client:
        asyncio.run(serve(client, token, port, lambda at: click.echo(f"coordinates at {at}")))
