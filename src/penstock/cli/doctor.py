"""`penstock doctor`: checks everything Penstock needs, and says how to get what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from rich.console import Console

from penstock.cli.address import server_options
from penstock.errors import PenstockError
from penstock.spark import requirements
from penstock.spark.jar import find_jar


@click.command()
@server_options
@click.option("--jar", "only_jar", is_flag=True, help="Print the path of the plug-in's jar only.")
@click.option(
    "--conf",
    "job_settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the job in question, as spark-submit takes it.",
)
def doctor(only_jar: bool, job_settings: tuple[str, ...], **server: Any) -> int:
    """Check Python, Java, PySpark, the plug-in's jar, settings, classes, loopback and the server.

    Each line says what was found, or what to do. PySpark is optional: a machine that runs the log
    needs neither it nor Java. Exits with 1 if anything is missing. With --jar
    it prints one path, for a command line such as

        spark-submit --jars "$(penstock doctor --jar)" job.py
    """
    if only_jar:
        click.echo(find_jar().path)
        return 0
    job_conf = dict(_pair(setting) for setting in job_settings)
    checks: dict[str, Callable[[], str]] = {
        "python": requirements.check_python,
        "java": requirements.check_java,
        "pyspark": requirements.check_pyspark,
        "plug-in": requirements.check_jar,
        "switches": lambda: requirements.check_switches(job_conf),
        "classes": requirements.check_class_archive,
        "loopback": requirements.check_loopback,
        "server": lambda: requirements.check_server(**server),
    }
    console = Console(highlight=False, soft_wrap=True)
    failed = 0
    for name, check in checks.items():
        try:
            sentence, mark = check(), "[green]ok  [/]"
        except PenstockError as error:
            failed += 1
            sentence, mark = error.message, "[red]FAIL[/]"
        console.print(f"{mark} {name:9}", end="")
        console.print(sentence, markup=False)
    if failed:
        console.print(f"{failed} of {len(checks)} checks failed", style="red")
    return 1 if failed else 0


def _pair(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise click.BadParameter(f"'{setting}' is not NAME=VALUE", param_hint="--conf")
    return name.strip(), value.strip()
