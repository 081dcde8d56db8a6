"""kill -9 of the driver at the steps of a commit from the rows of a batch on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.servers.processes import ServerProcess
from support.spark.commit_kills import Stop, check_a_kill

ENDED = {"files": (4, 4), "batches": (4, 4)}

STOPS = [
    Stop("mid_task", {"totals": (2, 3)}, snapshots="totals"),
    Stop("after_appends", {"totals": (2, 3)}, snapshots="files"),
    Stop("before_marker,before_commit", {"totals": (3, 3), **ENDED}),
    Stop(
        "before_marker,before_commit",
        {"totals": (3, 3), **ENDED},
        version="1",
        plain=True,
    ),
    Stop("after_marker", {"totals": (4, 4)}, version="1"),
    Stop("before_copy", {"totals": (4, 13)}, again="in_recovery"),
    Stop("before_delete", {"totals": (5, 13), "files": (5, 13), "batches": (5, 13)}, retained=2),
]


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_kill_at_each_point_from_the_rows_on(
    server: ServerProcess, tmp_path: Path, stop: Stop
) -> None:
    check_a_kill(server, tmp_path / "job", stop)
