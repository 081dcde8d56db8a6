"""Spark without the jar, in a process of its own, going on from a checkpoint of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.sources import ROOT
from support.spark.window_runs import Answer

LIMIT_S = 300


def continued(parts: Path, checkpoint: Path, query_name: str = "windows") -> Answer:
    """The answers of a query of `plain_windows` over the rest of its files."""
    script = [sys.executable, "-m", "support.spark.plain_windows"]
    script += [str(parts), str(checkpoint), query_name]
    alone = subprocess.run(
        script, capture_output=True, text=True, timeout=LIMIT_S, env=_environment(), check=False
    )
    assert alone.returncode == 0, alone.stderr[-4000:]
    batches = json.loads(alone.stdout.splitlines()[-1])
    return {int(batch): [tuple(row) for row in rows] for batch, rows in batches.items()}


def _environment() -> dict[str, str]:
    """The environment of a Spark that has nothing of ours but the test's own modules."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    return {**kept, "PYTHONPATH": str(ROOT / "tests"), "PYSPARK_PYTHON": sys.executable}
