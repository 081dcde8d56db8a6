"""`penstock serve`: the log and its gateway in one process."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from penstock.errors import PenstockError
from penstock.gateway.server import Address, Server, run
from penstock.log.address import log_address
from penstock.settings.server import settings_from


@click.command()
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True,
    help="Folder of the log; made if it is not there.",
)  # fmt: skip
@click.option(
    "--log", "log_text", metavar="nats://HOST:PORT[,..][/STREAM]",
    help="Keep the log in JetStream; the folder then holds an index of it.",
)  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="0 takes a free one.")
@click.option(
    "--token", envvar="PENSTOCK_TOKEN",
    help="Token clients must send. Made once and kept in the data folder if not given.",
)  # fmt: skip
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
    host: str,
    port: int,
    token: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    cut_damaged_tail: bool,
    texts: tuple[str, ...],
) -> None:
    """Serve the log in a folder over HTTP until told to stop."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    if token is not None and not token.strip():
        raise click.ClickException("the token is empty; give one, or none to have one made")
    try:
        settings = settings_from(dict(_pair(text) for text in texts))
        address = Address(host, port, tls_cert, tls_key)
        token_source = "as given" if token else f"in {data / 'token'}"
        jetstream = None if log_text is None else log_address(log_text)
        run(
            data, address, settings, token,
            lambda server: _announce(server, token_source, in_jetstream=jetstream is not None),
            cut_damaged_tail=cut_damaged_tail,
            log_address=jetstream,
        )  # fmt: skip
    except PenstockError as error:
        raise click.ClickException(error.message) from None


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
    serve()
