"""`penstock backup` and `penstock restore`: a log's folder, copied while its server runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from penstock.cli.address import client_of, server_options
from penstock.log.store.backup import restore as restore_folder
from penstock.log.store.backup import write_backup
from penstock.settings.server import Settings


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@server_options
def backup(folder: Path, **server: Any) -> None:
    """Copy the log of a running server to a new FOLDER, as it is at one moment.

    Appends go on meanwhile. The server copies it on its own disk first, which must have the room.
    The server's token is not copied. Of a log in JetStream it is all that this server has applied,
    and is restored as a log in a folder; docs/jetstream.md says how to get the streams back.

    \b
    Example: penstock backup backups/monday
    """
    size = write_backup(folder, client_of(**server).backup())
    click.echo(f"{folder}: {size} bytes")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False), required=True,
    help="Data folder to make; it must be empty or not there.",
)  # fmt: skip
def restore(folder: Path, data: Path) -> None:
    """Make a data folder from the backup in FOLDER; then start `penstock serve` on it.

    What was appended after the backup is gone. Places in the log are not used twice: a consumer or
    query whose position lies after the end of the backup is refused with an error that says so,
    instead of being given other rows. Runs of queries from before are fenced.

    \b
    Example:
      penstock restore backups/monday --data penstock-data && penstock serve --data penstock-data
    """
    done = restore_folder(folder, data, Settings())
    click.echo(
        f"{data}: {done.streams} streams and {done.queries} queries, up to position {done.last}; "
        f"new entries begin at {done.first_new}"
    )
