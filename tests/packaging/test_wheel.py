"""The wheel works where there is no checkout: it carries the jar and needs nothing else built."""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

from support.wheels import ROOT, build_archive, run

VERSION = metadata.version("penstock")
JAR = f"penstock/spark/jars/penstock-spark4.3_2.13-{VERSION}.jar"


def test_the_wheel_carries_one_jar_and_its_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    assert [name for name in names if name.endswith(".jar")] == [JAR]
    assert "penstock/spark/fairscheduler.xml" in names
    assert "penstock/py.typed" in names
    assert not [name for name in names if name.endswith(".scala") or "tests/" in name]
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("penstock_lab")]


def test_the_jar_in_the_wheel_has_the_version_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        jar = opened.extract(JAR, tmp_path)
    with zipfile.ZipFile(jar) as opened:
        properties = opened.read("penstock-version.properties").decode().splitlines()
        assert opened.namelist()[0] == "META-INF/MANIFEST.MF"
    assert {f"version={VERSION}", "spark=4.3"} <= set(properties)


def test_the_source_archive_can_build_the_jar_again(tmp_path: Path) -> None:
    with tarfile.open(build_archive(ROOT, "sdist", tmp_path)) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"hatch_build.py", "jvm/build.py", "pyproject.toml", "LICENSE", "README.md"} <= names
    assert {"lab/pyproject.toml", "lab/hatch_build.py"} <= names
    assert {path.name for path in ROOT.glob("*.md")} <= names
    scala = {path.relative_to(ROOT).as_posix() for path in (ROOT / "jvm").rglob("*.scala")}
    assert scala <= names
    assert not [name for name in names if name.endswith(".jar")]


def test_the_doctor_is_content_with_the_installed_wheel(installed: Path, tmp_path: Path) -> None:
    done = run(sys.executable, "-m", "penstock", "doctor", cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"({installed / JAR})" in done.stdout
    assert done.stdout.count("ok  ") == 8


def test_the_doctor_says_what_to_do_about_what_is_missing(installed: Path, tmp_path: Path) -> None:
    done = run(
        sys.executable,
        "-m",
        "penstock",
        "doctor",
        "--url",
        "http://127.0.0.1:9",
        cwd=tmp_path,
        PYTHONPATH=str(installed),
        JAVA_HOME=str(tmp_path),
        PENSTOCK_JAR=str(tmp_path / "none.jar"),
    )
    assert done.returncode == 1
    assert re.search(r"FAIL java .*install a JDK 17", done.stdout)
    assert re.search(r"FAIL plug-in .*none\.jar is not the plug-in's jar", done.stdout)
    assert re.search(r"FAIL server .*start it with 'penstock serve ", done.stdout)
    assert "3 of 8 checks failed" in done.stdout


def test_the_jar_does_not_depend_on_when_or_where_it_is_built(tmp_path: Path) -> None:
    jars = []
    for place in ("one", "two"):
        root = tmp_path / place
        source = root / "jvm" / "src" / "Small.scala"
        source.parent.mkdir(parents=True)
        source.write_text('package penstock\n\nobject Small { def word: String = "small" }\n')
        (root / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
        script = str(ROOT / "jvm" / "build.py")
        first = run(sys.executable, script, "--root", str(root), cwd=tmp_path)
        assert first.returncode == 0, first.stderr
        assert "(built" in first.stdout
        again = run(sys.executable, script, "--root", str(root), cwd=tmp_path)
        assert "(unchanged" in again.stdout
        jars.append(next((root / "src" / "penstock" / "spark" / "jars").iterdir()))
    assert jars[0].name == "penstock-spark4.3_2.13-1.2.3.jar"
    assert jars[0].read_bytes() == jars[1].read_bytes()


def test_a_build_without_java_says_what_to_install(tmp_path: Path) -> None:
    script = str(ROOT / "jvm" / "build.py")
    done = run(sys.executable, script, "--force", cwd=tmp_path, JAVA_HOME=str(tmp_path / "nowhere"))
    assert done.returncode == 1
    assert re.search(r"error: no java at .*install a JDK 17 or newer", done.stderr)
    assert "Traceback" not in done.stderr
