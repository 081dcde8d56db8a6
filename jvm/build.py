"""Builds the Spark plug-in's jar with the Scala compiler that PySpark itself carries.

`python jvm/build.py` is all: no sbt, no Maven, no network. The same inputs give the same bytes, and
unchanged inputs give no work: the jar remembers a hash of what it was made from. A failed compile
leaves the jar of the last good one in place. `--suite` also compiles the contract suite of
jvm/suite, which no wheel carries.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JARS = Path("src", "penstock", "spark", "jars")
SPARK_LINE = "4.3"
JAVA_MIN = 17
PROPERTIES = "penstock-version.properties"
SCALA_OPTIONS = (
    *("-encoding", "utf8", "-Werror", "-Xlint", "-Wunused", "-deprecation", "-feature"),
    *("-unchecked", "-language:implicitConversions"),
)
# The oldest moment a zip entry can carry: the jar must not depend on when it was built.
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


class CannotBuild(Exception):
    """The jar cannot be built here; the message says what is missing."""


def project_version(root: Path = ROOT) -> str:
    """The one version there is, from pyproject.toml."""
    with (root / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def jar_path(root: Path = ROOT) -> Path:
    """Where the jar of this checkout goes; named by Spark line, as one jar serves one line."""
    return root / JARS / f"penstock-spark{SPARK_LINE}_2.13-{project_version(root)}.jar"


def find_java() -> Path:
    """A `java` of at least JAVA_MIN: JAVA_HOME's, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    java = Path(home, "bin", "java") if home else shutil.which("java")
    remedy = (
        f"install a JDK {JAVA_MIN} or newer (Debian: openjdk-17-jdk-headless) and put it on "
        "PATH, or point JAVA_HOME at it"
    )
    if not java or not Path(java).exists():
        raise CannotBuild(f"no java at {java or 'any place on PATH'}; {remedy}")
    version_run = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    number = re.search(r'version "(\d+)', version_run.stderr + version_run.stdout)
    if number is None or int(number[1]) < JAVA_MIN:
        raise CannotBuild(f"{java} is Java {number[1] if number else 'of no version'}; {remedy}")
    return Path(java)


def spark_jars() -> Path:
    """The jars folder of the installed PySpark, found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise CannotBuild(f"pyspark is not installed here; pip install 'pyspark=={SPARK_LINE}.*'")
    installed = metadata.version("pyspark")
    if not installed.startswith(f"{SPARK_LINE}."):
        raise CannotBuild(f"the plug-in is for Spark {SPARK_LINE}, and pyspark here is {installed}")
    return Path(spec.origin).parent / "jars"


def scala_sources(root: Path = ROOT) -> list[Path]:
    return sorted((root / "jvm" / "src").rglob("*.scala"))


def _resources(root: Path) -> list[tuple[str, Path]]:
    base = root / "jvm" / "resources"
    return sorted((p.relative_to(base).as_posix(), p) for p in base.rglob("*") if p.is_file())


def inputs_hash(root: Path = ROOT) -> str:
    """Changes whenever the jar could: sources, resources, version, PySpark and this file."""
    digest = hashlib.sha256(f"{project_version(root)} {metadata.version('pyspark')}".encode())
    named = [(p.relative_to(root).as_posix(), p) for p in scala_sources(root)]
    for name, path in [*named, *_resources(root), ("jvm/build.py", Path(__file__))]:
        data = path.read_bytes()
        digest.update(f"\0{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()


def is_current(jar: Path, inputs: str) -> bool:
    """Whether `jar` was made from exactly these inputs."""
    try:
        with zipfile.ZipFile(jar) as opened:
            return f"inputs={inputs}" in opened.read(PROPERTIES).decode().splitlines()
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


def compile_scala(sources: list[Path], out: Path, *more: Path) -> None:
    """Compile against Spark's jars and `more`; a warning is an error."""
    jars = spark_jars()
    class_path = os.pathsep.join(str(p) for p in [*sorted(jars.glob("*.jar")), *more])
    command = [str(find_java()), "-Xss8m", "-Xmx1g", "-cp", f"{jars}{os.sep}*"]
    command += ["scala.tools.nsc.Main", "-classpath", class_path, "-d", str(out), *SCALA_OPTIONS]
    done = subprocess.run([*command, *map(str, sources)], check=False)
    if done.returncode:
        raise CannotBuild("the Scala sources do not compile; the messages are above")


def _pack(root: Path, classes: Path, inputs: str, target: Path) -> None:
    entries: dict[str, bytes] = {
        "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\r\nCreated-By: penstock\r\n\r\n",
        PROPERTIES: (
            f"version={project_version(root)}\nspark={SPARK_LINE}\ninputs={inputs}\n".encode()
        ),
    }
    for path in classes.rglob("*"):
        if path.is_file():
            entries[path.relative_to(classes).as_posix()] = path.read_bytes()
    entries |= {name: path.read_bytes() for name, path in _resources(root)}
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_suffix(".tmp")
    # The manifest must be the first entry: java.util.jar.JarInputStream looks nowhere else.
    names = sorted(entries, key=lambda name: (name != "META-INF/MANIFEST.MF", name))
    with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as jar:
        for name in names:
            info = zipfile.ZipInfo(name, ZIP_EPOCH)
            info.external_attr = 0o644 << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            jar.writestr(info, entries[name])
    fresh.replace(target)


def build(root: Path = ROOT, *, force: bool = False) -> tuple[Path, bool]:
    """Build the jar if it is not current; returns its path and whether it was compiled anew.

    Jars of other versions in the same folder are removed, so that a wheel never carries two.
    """
    if not scala_sources(root):
        raise CannotBuild(f"no Scala sources under {root / 'jvm' / 'src'}")
    target, inputs = jar_path(root), inputs_hash(root)
    if not force and is_current(target, inputs):
        return target, False
    with tempfile.TemporaryDirectory(prefix="penstock-jar-") as scratch:
        compile_scala(scala_sources(root), Path(scratch))
        _pack(root, Path(scratch), inputs, target)
    for other in target.parent.glob("penstock-spark*.jar"):
        if other != target:
            other.unlink()
    return target, True


def build_suite(root: Path, jar: Path) -> str:
    """Compile the contract suite against the jar; returns the class path that runs it."""
    sources = sorted((root / "jvm" / "suite").glob("*.scala"))
    digest = hashlib.sha256(inputs_hash(root).encode())
    for path in sources:
        digest.update(path.read_bytes())
    classes, inputs_file = root / "build" / "suite", root / "build" / "suite.inputs"
    if not inputs_file.exists() or inputs_file.read_text(encoding="utf-8") != digest.hexdigest():
        inputs_file.unlink(missing_ok=True)
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir(parents=True)
        compile_scala(sources, classes, jar)
        inputs_file.write_text(digest.hexdigest(), encoding="utf-8")
    return os.pathsep.join([str(classes), str(jar), f"{spark_jars()}{os.sep}*"])


def main() -> int:
    parser = argparse.ArgumentParser(description="build the Spark plug-in's jar")
    parser.add_argument("--force", action="store_true", help="compile even if nothing changed")
    parser.add_argument("--java", action="store_true", help="only say which java would be used")
    parser.add_argument(
        "--suite", action="store_true", help="compile the suite too; say its class path"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout to build")
    asked = parser.parse_args()
    try:
        if asked.java:
            print(find_java())
            return 0
        root = asked.root.resolve()
        path, compiled = build(root, force=asked.force)
        if asked.suite:
            print(build_suite(root, path))
            return 0
    except CannotBuild as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{path} ({'built' if compiled else 'unchanged'}, {path.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
