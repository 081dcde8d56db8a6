"""The options every command that talks to a server has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from penstock.client import Client
from penstock.client.address import find, no_server

DEADLINE_S = 5.0
F = TypeVar("F", bound=Callable[..., Any])


def server_options(command: F) -> F:
    """Adds --url, --token, --ca and --data; the last one comes before the environment."""
    for option in (
        click.option("--data", type=click.Path(path_type=Path), help="Data folder of the server."),
        click.option("--ca", metavar="PEM", help="Certificates to trust.  [PENSTOCK_CA]"),
        click.option("--token", help="The server's token.  [PENSTOCK_TOKEN]"),
        click.option("--url", help="The server's URL.  [PENSTOCK_URL]"),
    ):
        command = option(command)
    return command


def client_of(url: str | None, token: str | None, ca: str | None, data: Path | None) -> Client:
    """A client of the server the options name; it gives up sooner than one in a program."""
    address = find(url, token, ca, data)
    if address is None:
        raise no_server(data)
    return Client(address.url, address.token, address.ca, deadline_s=DEADLINE_S)
