"""Jars of other projects from Maven Central, fetched by the Ivy that PySpark carries."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from xml.sax.saxutils import quoteattr

from support.sources import ROOT

FETCHED = ROOT / "build" / "maven"
LIMIT_S = 240


class CannotFetch(Exception):
    """The jars cannot be had here; the message says why."""


def jars(*coordinates: str) -> list[Path]:
    """The jar of each `organisation:module:revision`, without what it depends on."""
    wanted = [FETCHED / f"{module}-{revision}.jar" for _, module, revision in _split(coordinates)]
    if not all(jar.exists() for jar in wanted):
        _fetch(coordinates)
    return wanted


def _split(coordinates: tuple[str, ...]) -> list[list[str]]:
    return [each.split(":") for each in coordinates]


def _fetch(coordinates: tuple[str, ...]) -> None:
    dependencies = "".join(
        f"<dependency org={quoteattr(organisation)} name={quoteattr(module)} "
        f'rev={quoteattr(revision)} transitive="false" conf="default->master"/>'
        for organisation, module, revision in _split(coordinates)
    )
    FETCHED.mkdir(parents=True, exist_ok=True)
    description = FETCHED / "ivy.xml"
    description.write_text(
        '<ivy-module version="2.0"><info organisation="tests" module="jars"/>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    (ivy,) = (Path(pyspark.origin).parent / "jars").glob("ivy-*.jar")
    command = ["java", "-cp", str(ivy), "org.apache.ivy.Main", "-warn"]
    command += ["-ivy", str(description), "-cache", str(FETCHED / "cache")]
    command += ["-retrieve", str(FETCHED / "[artifact]-[revision].[ext]")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CannotFetch(f"Maven Central has not answered for {LIMIT_S} s") from None
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()
        raise CannotFetch(f"Maven Central has not given {', '.join(coordinates)}: {lines[-1]}")
