"""The start of a worker is part of the recovery that is measured, so it loads little."""

from __future__ import annotations

import subprocess
import sys


def test_a_worker_starts_without_packages_for_tables() -> None:
    script = (
        "import sys, penstock_lab.baselines.task_graph.worker; "
        "sys.exit(', '.join({'numpy', 'pyarrow', 'pandas', 'psutil'} & set(sys.modules)) or None)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert ended.stderr.strip() == ""
    assert ended.returncode == 0
