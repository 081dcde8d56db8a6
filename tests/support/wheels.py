"""Builds and unpacks archives of this repository, and makes environments with few packages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PENSTOCK_")}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def build_archive(project: Path, kind: str, folder: Path) -> Path:
    """The wheel or sdist of a project of this repository."""
    done = run(
        *(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)), cwd=project
    )
    assert done.returncode == 0, done.stderr
    return next(path for path in folder.iterdir() if path.is_file())


def unpack_wheels(folder: Path, *wheels: Path) -> Path:
    """Install wheels into a folder, without their dependencies."""
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target")
    done = run(*pip, str(folder), *map(str, wheels), cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


def required_packages(distribution: str, *extras: str) -> set[str]:
    """The names of everything that installing a distribution brings, itself left out."""
    names: set[str] = set()
    waiting = [(distribution, extras)]
    while waiting:
        name, wanted = waiting.pop()
        for requirement in metadata.requires(name) or []:
            needed, _, marker = requirement.partition(";")
            extra = re.search(r"extra == ['\"]([\w-]+)['\"]", marker)
            if extra is not None and extra[1] not in wanted:
                continue
            match = re.match(r"([\w.-]+)(?:\[([\w, -]+)\])?", needed.strip())
            assert match is not None
            package = re.sub(r"[-_.]+", "-", match[1]).lower()
            if package not in names and _is_installed(package):
                names.add(package)
                waiting.append((package, tuple((match[2] or "").replace(" ", "").split(","))))
    return names - {distribution}


def link_packages(folder: Path, names: set[str]) -> Path:
    """A folder that holds just these packages of this environment, by links."""
    for name in names:
        for file in metadata.distribution(name).files or []:
            top = file.parts[0]
            if top not in ("..", "__pycache__") and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(metadata.distribution(name).locate_file(top))))
    return folder


def _is_installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        # A requirement of another platform or Python, by a marker.
        return False
    return True
