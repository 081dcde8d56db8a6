"""Result files that a stranger can read, and where a result goes: to people, a file, a picture.

The file is `{"suite", "machine", "versions", "settings", "runs", "figures": {name: number}}`, with
`"profile"` where a suite explains its figures; those that sum a suite up are named `headline.…`.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import psutil
from rich.console import Console

from penstock.errors import Bug
from penstock_lab.experiment.figures import Figure
from penstock_lab.experiment.needs import is_installed, require_plot

PACKAGES = ("penstock", "pyspark", "pyarrow", "numpy", "lmdb", "duckdb")


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of a suite; a machine compares its `figures` by name."""

    suite: str
    machine: dict[str, Any]
    versions: dict[str, str]
    settings: dict[str, Any]
    runs: list[dict[str, Any]]
    figures: dict[str, float]
    profile: dict[str, Any] | None = None


def result(
    suite: str,
    settings: dict[str, Any],
    runs: list[dict[str, Any]],
    figures: Sequence[Figure],
    profile: dict[str, Any] | None = None,
) -> Result:
    """Refuses two figures of one name: the second would hide the first."""
    by_name = {figure.name: round(figure.value, 3) for figure in figures}
    if len(by_name) < len(figures):
        raise Bug(f"suite {suite} names a figure twice: {sorted(by_name)}", code="bug")
    return Result(suite, machine(), versions(), settings, runs, by_name, profile)


def machine() -> dict[str, Any]:
    """The machine: what the figures depend on and a reader cannot know."""
    return {
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


def versions() -> dict[str, str]:
    of_packages = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **of_packages}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def write(result: Result, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


@dataclass(frozen=True)
class Outlet:
    """The places a result goes to. `done` is called once, before anything is shown."""

    console: Console
    json_file: Path | None = None
    plot_file: Path | None = None
    done: Callable[[], None] = lambda: None

    def require(self) -> None:
        """Raises BadCall if a picture is wanted and cannot be drawn here."""
        if self.plot_file is not None:
            require_plot(is_installed)
