"""The laboratory is a distribution of its own, tied to the product of its version."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from importlib import metadata
from pathlib import Path

from support.wheels import ROOT, build_archive, run, unpack_wheels

VERSION = metadata.version("penstock")


def metadata_in(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as opened:
        name = next(each for each in opened.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(opened.read(name))


def test_the_laboratory_depends_on_the_product_of_its_own_version(lab_wheel: Path) -> None:
    described = metadata_in(lab_wheel)
    assert described["Version"] == VERSION
    assert f"penstock[jetstream,redis,spark]=={VERSION}" in described.get_all("Requires-Dist", [])


def test_the_product_needs_neither_spark_nor_what_only_the_laboratory_uses(wheel: Path) -> None:
    always = [
        requirement
        for requirement in metadata_in(wheel).get_all("Requires-Dist", [])
        if "extra ==" not in requirement
    ]
    named = " ".join(always)
    for package in ("pyspark", "duckdb", "psutil", "pandas", "matplotlib", "redis", "nats"):
        assert package not in named


def test_the_laboratory_s_source_archive_builds_without_the_repository(tmp_path: Path) -> None:
    archive = build_archive(ROOT / "lab", "sdist", tmp_path)
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    unpacked = next(path for path in tmp_path.iterdir() if path.is_dir())
    again = tmp_path / "again"
    again.mkdir()
    assert metadata_in(build_archive(unpacked, "wheel", again))["Version"] == VERSION


def test_installed_beside_the_product_it_adds_its_commands(
    wheel: Path, lab_wheel: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    unpack_wheels(folder, wheel, lab_wheel)
    listed = run(
        *(sys.executable, "-m", "penstock", "bench", "--help"),
        cwd=tmp_path,
        PYTHONPATH=str(folder),
    )
    assert listed.returncode == 0, listed.stderr
    assert "floor" in listed.stdout
