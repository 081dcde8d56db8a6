"""`penstock serve`: the log and its gateway in one process."""

from __future__ import annotations

import logging
import os
import sys
from dataclasses import replace
from pathlib import Path

import click
from click.core import ParameterSource

from penstock.cli.address import no_token_option
from penstock.client.address import TOKEN_VARIABLE
from penstock.errors import PenstockError
from penstock.gateway.server import Address, Credentials, Server, run
from penstock.log.address import LogAddress, log_address
from penstock.model.no_pandas import leave_out_pandas
from penstock.settings.server import settings_from


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True,
    help="Folder of the log; made if it is not there.",
)  # fmt: skip
@click.option(
    "--log", "log_text", metavar="nats://HOST:PORT[,..][/STREAM]", envvar="PENSTOCK_LOG",
    help="Keep the log in JetStream; the folder then holds an index of it.  [PENSTOCK_LOG]",
)  # fmt: skip
@click.option(
    "--log-credentials", type=click.Path(path_type=Path, dir_okay=False),
    envvar="PENSTOCK_LOG_CREDENTIALS", metavar="FILE",
    help="Login for JetStream: a .creds file, or USER:PASSWORD, or a token.  "
    "[PENSTOCK_LOG_CREDENTIALS]",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
    envvar="PENSTOCK_TOKEN_FILE",
    help="Tokens clients may send, one a line with its scopes; read anew when it changes. Without "
    "it and PENSTOCK_TOKEN one is made and kept in the data folder.  [PENSTOCK_TOKEN_FILE]",
)  # fmt: skip
@no_token_option
@click.option("--tls-cert", type=click.Path(path_type=Path), help="PEM certificate.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="PEM key of the certificate.")
@click.option(
    "--cut-damaged-tail", is_flag=True,
    help="Remove a damaged end of the log at start, and say what was removed.",
)  # fmt: skip
@click.option("--set", "texts", multiple=True, metavar="NAME=VALUE", help="A setting; repeatable.")
def serve(
    data: Path,
    log_text: str | None,
    log_credentials: Path | None,
    host: str,
    port: int,
    token_file: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    cut_damaged_tail: bool,
    texts: tuple[str, ...],
) -> None:
    """Serve the log in a folder over HTTP until told to stop."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    token = os.environ.get(TOKEN_VARIABLE)
    if token is not None and not token.strip():
        raise click.ClickException(
            f"the token in {TOKEN_VARIABLE} is empty; give one, or unset it to have one made"
        )
    try:
        settings = settings_from(dict(_pair(text) for text in texts))
        address = Address(host, port, tls_cert, tls_key)
        jetstream = _log_at(log_text, log_credentials)
        token_source = _token_source(token, token_file, data)
        run(
            data, address, settings, Credentials(token, token_file),
            lambda server: _announce(server, token_source, in_jetstream=jetstream is not None),
            cut_damaged_tail=cut_damaged_tail,
            log_address=jetstream,
        )  # fmt: skip
    except PenstockError as error:
        raise click.ClickException(error.message) from None


def _token_source(token: str | None, token_file: Path | None, data: Path) -> str:
    if token_file is not None:
        return f"in {token_file}" + (" or as given" if token else "")
    return "as given" if token else f"in {data / 'token'}"


def _log_at(text: str | None, credentials: Path | None) -> LogAddress | None:
    """The address of a log in JetStream. A login in it is refused on a command line, which every
    user of the machine can read."""
    if text is None:
        return None
    address = log_address(text)
    source = click.get_current_context().get_parameter_source("log_text")
    if address.login and source is ParameterSource.COMMANDLINE:
        raise click.ClickException(
            "the address of the log has a login, and a command line can be read by every user of "
            "this machine; put it into a file and give --log-credentials FILE, or set PENSTOCK_LOG"
        )
    return replace(address, credentials=credentials)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.ClickException(f"--set takes NAME=VALUE, not {text!r}")
    return name, value


def _announce(server: Server, token_source: str, *, in_jetstream: bool) -> None:
    """Print where the server is; of a log in JetStream, what its answers promise too."""
    if server.log.cut is not None:
        click.echo(str(server.log.cut), err=True)
    if in_jetstream:
        click.echo(server.log.about)
    click.echo(f"penstock serves {server.log.folder.path} at {server.url}, token {token_source}")


if __name__ == "__main__":
    leave_out_pandas()
    serve()
