"""`penstock archive`: Spark's classes laid out once, so that drivers are at work sooner."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import BadCall
from penstock.spark.class_archive import (
    FOLDER_VARIABLE,
    archive_path,
    archives_folder,
    make_archive,
)
from penstock.spark.installed import need_pyspark

MIB = 1 << 20


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Keep it here.  [default: ${FOLDER_VARIABLE}, else ~/.cache/penstock/classes]",
)
@click.option("--again", is_flag=True, help="Make it anew if it is there.")
def archive(folder: Path | None, again: bool) -> None:
    """Lay out the classes of Spark once, so that drivers on this machine are at work sooner.

    Runs a small job, about a minute, and keeps the classes that it has loaded as Java keeps them in
    memory. From then on penstock.session names that archive to the JVM that it starts: a start
    after a failure, too, is shorter. To be run again after another Java or Spark was installed;
    an archive that does not fit is left out by Java. Jobs under spark-submit can name it
    themselves: --conf spark.driver.defaultJavaOptions=-XX:SharedArchiveFile=...

    \b
    Example: penstock archive
    """
    folder = folder or archives_folder()
    if folder is None:
        raise BadCall(
            f"{FOLDER_VARIABLE} is empty, which says that archives are not used, or this user has "
            "no home folder; name a folder with --folder",
            code="no_archive",
        )
    need_pyspark()
    if not again and (present := archive_path(folder)).exists():
        click.echo(f"{present}: is there, for this Java and this Spark")
        return
    began_s = SYSTEM_CLOCK.monotonic_s()
    with Console(highlight=False).status("running the job whose classes are kept"):
        made = make_archive(folder)
    took_s = SYSTEM_CLOCK.monotonic_s() - began_s
    click.echo(f"{made}: {made.stat().st_size / MIB:.0f} MB, made in {took_s:.0f} s")
