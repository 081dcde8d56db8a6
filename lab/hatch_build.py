"""Takes the version from the product's pyproject.toml, and depends on that product alone."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

DEPENDENCIES = (
    "numpy>=1.26",
    "duckdb>=1.1",
    "psutil>=6",
    # Q4 and Q6 keep state with applyInPandasWithState, which needs pandas on the workers.
    "pandas>=2.2,<3",
    "matplotlib>=3.8",
)


class SameVersionHook(MetadataHookInterface):
    """Runs in the repository only: an unpacked source archive carries the result as metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        with (Path(self.root).parent / "pyproject.toml").open("rb") as file:
            version = tomllib.load(file)["project"]["version"]
        metadata["version"] = version
        metadata["dependencies"] = [f"penstock[spark,jetstream,redis]=={version}", *DEPENDENCIES]
