"""The archive of Spark's classes: its name, who gets it, and a job that fails."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import BadCall
from penstock.spark import class_archive
from penstock.spark.class_archive import (
    FOLDER_VARIABLE,
    WRITTEN_VARIABLE,
    archive_options,
    archive_path,
    archives_folder,
    make_archive,
)

OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An installation with one jar, and an empty folder for archives."""
    jar = tmp_path / "spark" / "jars" / "spark-core.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"classes")
    return {"SPARK_HOME": str(tmp_path / "spark"), FOLDER_VARIABLE: str(tmp_path / "archives")}


def archived(environ: dict[str, str]) -> Path:
    folder = Path(environ[FOLDER_VARIABLE])
    folder.mkdir(exist_ok=True)
    archive = archive_path(folder, environ)
    archive.write_bytes(b"archive")
    return archive


def test_archives_are_in_the_user_s_cache_unless_a_folder_is_named_or_none_is_wanted() -> None:
    assert archives_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/penstock/classes")
    assert archives_folder({FOLDER_VARIABLE: "/a"}) == Path("/a")
    assert archives_folder({FOLDER_VARIABLE: ""}) is None


def test_a_jvm_gets_the_archive_that_is_there(environ: dict[str, str]) -> None:
    assert archive_options({}, environ) is None, "nobody has made one"
    archive = archived(environ)
    assert f"-XX:SharedArchiveFile={archive} " in (archive_options({}, environ) or "")
    assert archive_options({}, {**environ, FOLDER_VARIABLE: ""}) is None


def test_a_user_without_a_home_and_a_folder_that_cannot_be_read_start_without_an_archive(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> bool:
        raise PermissionError("not yours")

    def homeless() -> Path:
        raise RuntimeError("could not determine home directory")

    archived(environ)
    with monkeypatch.context() as unreadable:
        unreadable.setattr(Path, "exists", refused)
        assert archive_options({}, environ) is None
    monkeypatch.setattr(Path, "home", homeless)
    assert archives_folder({}) is None


def test_jars_of_another_size_have_another_archive(environ: dict[str, str]) -> None:
    archived(environ)
    Path(environ["SPARK_HOME"], "jars", "spark-core.jar").write_bytes(b"more classes")
    assert archive_options({}, environ) is None


@pytest.mark.parametrize(
    "option", ["-XX:SharedArchiveFile=mine.jsa", "-Xshare:off", "-XX:ArchiveClassesAtExit=x"]
)
def test_what_the_user_has_said_of_archives_stays(environ: dict[str, str], option: str) -> None:
    archived(environ)
    assert archive_options({OPTIONS: f"-Da=b {option}"}, environ) is None
    assert archive_options({}, {**environ, "JAVA_TOOL_OPTIONS": option}) is None


def test_a_job_that_fails_leaves_no_archive_and_its_last_lines_are_told(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 3, "first\nno space left")

    monkeypatch.setattr("penstock.spark.class_archive.subprocess.run", failed)
    folder = Path(environ[FOLDER_VARIABLE])
    with pytest.raises(BadCall, match="no space left"):
        make_archive(folder, environ)
    assert list(folder.iterdir()) == []


def test_an_archive_has_its_name_only_when_it_is_whole(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(
        command: list[str], env: dict[str, str], **_: Any
    ) -> subprocess.CompletedProcess[str]:
        assert archive_options({}, env) == f"-XX:ArchiveClassesAtExit={env[WRITTEN_VARIABLE]} " + (
            class_archive.QUIETLY
        )
        assert not archive_path(folder, environ).exists()
        Path(env[WRITTEN_VARIABLE]).write_bytes(b"archive")
        return subprocess.CompletedProcess(command, 0, "")

    monkeypatch.setattr("penstock.spark.class_archive.subprocess.run", ended)
    folder = Path(environ[FOLDER_VARIABLE])
    assert make_archive(folder, environ).read_bytes() == b"archive"
    assert [path.suffix for path in folder.iterdir()] == [".jsa"]
