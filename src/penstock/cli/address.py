"""The options every command that talks to a server has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from penstock.client.address import TOKEN_VARIABLE, find, no_server, read_token

if TYPE_CHECKING:
    from penstock.client import Client

DEADLINE_S = 5.0
F = TypeVar("F", bound=Callable[..., Any])


def _refuse_token(_: click.Context, __: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(
            "a token on a command line can be read by every user of this machine; set "
            f"{TOKEN_VARIABLE}, or give --token-file FILE"
        )


no_token_option: Callable[[F], F] = click.option(
    "--token", hidden=True, expose_value=False, callback=_refuse_token
)
"""An option that is there to say what to use in its place."""


def server_options(command: F) -> F:
    """Adds --url, --token-file, --ca and --data; the last one comes before the environment."""
    for option in (
        click.option("--data", type=click.Path(path_type=Path), help="Data folder of the server."),
        click.option("--ca", metavar="PEM", help="Certificates to trust.  [PENSTOCK_CA]"),
        no_token_option,
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="File with the server's token.  [PENSTOCK_TOKEN, PENSTOCK_TOKEN_FILE]",
        ),
        click.option("--url", help="The server's URL.  [PENSTOCK_URL]"),
    ):
        command = option(command)
    return command


def client_of(
    url: str | None, token_file: Path | None, ca: str | None, data: Path | None
) -> Client:
    """A client of the server the options name; it gives up sooner than one in a program."""
    # `penstock serve` takes an option from here, and no client.
    from penstock.client import Client

    token = None if token_file is None else read_token(token_file)
    address = find(url, token, ca, data)
    if address is None:
        raise no_server(data)
    return Client(address.url, address.token, address.ca, deadline_s=DEADLINE_S)
