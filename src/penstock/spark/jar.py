"""Finds the jar of the Spark plug-in.

Order: the file that PENSTOCK_JAR names, then the package's own `jars` folder. A jar is named by the
Spark line it is built for; a jar of another Spark line or of another version is never taken.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import msgspec

from penstock.errors import BadCall
from penstock.spark.installed import need_pyspark

JAR_VARIABLE = "PENSTOCK_JAR"
SPARK_LINE = "4.3"
PROPERTIES = "penstock-version.properties"


class Jar(msgspec.Struct, frozen=True):
    """A jar of the plug-in, with the versions that its properties name."""

    path: Path
    version: str
    spark: str

    def classes(self) -> list[str]:
        """The names of its top-level classes, sorted."""
        with zipfile.ZipFile(self.path) as opened:
            return sorted(
                name.removesuffix(".class").replace("/", ".")
                for name in opened.namelist()
                if name.endswith(".class") and "$" not in name
            )


def our_version() -> str:
    """The version of the installed package, which the jar's must equal."""
    return metadata.version("penstock")


def spark_version() -> str:
    return metadata.version("pyspark")


def jars_folder() -> Path:
    return Path(__file__).parent / "jars"


def find_jar(environ: Mapping[str, str] = os.environ, folder: Path | None = None) -> Jar:
    """The jar for the installed PySpark; raises BadCall with what is there and what to do."""
    need_pyspark()
    _refuse_other_spark(spark_version())
    given = environ.get(JAR_VARIABLE)
    if given:
        return _checked(inspect(Path(given)), f"{JAR_VARIABLE} names")
    folder = folder if folder is not None else jars_folder()
    wanted = f"penstock-spark{SPARK_LINE}_2.13-{our_version()}.jar"
    if (folder / wanted).is_file():
        return _checked(inspect(folder / wanted), "the package has")
    present = sorted(path.name for path in folder.glob("*.jar"))
    raise BadCall(
        f"no {wanted} in {folder}, which has {', '.join(present) or 'no jars'}; in a checkout run "
        f"'make jar', else install penstock again, or set {JAR_VARIABLE} to the jar's path",
        code="no_jar",
    )


def inspect(path: Path) -> Jar:
    """The jar at `path` with its versions, read from its properties file."""
    try:
        with zipfile.ZipFile(path) as opened:
            lines = opened.read(PROPERTIES).decode("utf-8").splitlines()
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise BadCall(
            f"{path} is not the plug-in's jar ({error}); build it with 'make jar'", code="no_jar"
        ) from error
    properties = dict(line.partition("=")[::2] for line in lines)
    return Jar(
        path.resolve(), properties.get("version", "unknown"), properties.get("spark", "unknown")
    )


def _refuse_other_spark(installed: str) -> None:
    if not installed.startswith(f"{SPARK_LINE}."):
        raise BadCall(
            f"the plug-in is built for Spark {SPARK_LINE}, and pyspark here is {installed}; "
            f"install pyspark {SPARK_LINE}",
            code="other_spark",
        )


def _checked(jar: Jar, who: str) -> Jar:
    if (jar.version, jar.spark) != (our_version(), SPARK_LINE):
        raise BadCall(
            f"{who} {jar.path}, which is version {jar.version} for Spark {jar.spark}, and this "
            f"package is {our_version()} for Spark {SPARK_LINE}; use the jar of this version",
            code="other_version",
        )
    return jar
