"""The wheels of the product and of the laboratory, built once for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.wheels import ROOT, build_archive, unpack_wheels


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_archive(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def lab_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_archive(ROOT / "lab", "wheel", tmp_path_factory.mktemp("lab-wheel"))


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the product's files; its dependencies are those of this environment."""
    return unpack_wheels(tmp_path_factory.mktemp("installed"), wheel)
