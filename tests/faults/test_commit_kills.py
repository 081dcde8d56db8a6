"""kill -9 of the driver at the steps of a commit up to the state of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.servers.processes import ServerProcess
from support.spark.commit_kills import Stop, check_a_kill

OTHERS = {"files": (3, 3), "batches": (3, 3)}
STATELESS = {"files": (3, 3), "batches": (3, 4)}

STOPS = [
    Stop("after_offsets", {"totals": (2, 3), **OTHERS}),
    Stop("before_release", {"totals": (3, 3), **OTHERS}, snapshots="files", plain=True),
    Stop("after_release", {"totals": (3, 3), **OTHERS}, version="1", snapshots="totals"),
    Stop("before_flush", {"totals": (2, 3), **STATELESS}),
    Stop("after_local", {"totals": (2, 3), **STATELESS}, snapshots="totals"),
    Stop(
        "before_state",
        {"totals": (2, 3), **STATELESS},
        version="1",
        plain=True,
        modes={"files": "asyncckpt"},
    ),
    Stop("after_state,before_snapshot", {"totals": (2, 3), **STATELESS}, transform=True),
]


@pytest.mark.parametrize("stop", STOPS, ids=str)
def test_a_kill_at_each_point_up_to_the_state(
    server: ServerProcess, tmp_path: Path, stop: Stop
) -> None:
    check_a_kill(server, tmp_path / "job", stop)
