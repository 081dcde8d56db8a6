"""kill -9 of the driver at the steps of a commit up to the state of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.servers.processes import ServerProcess
from support.spark.commit_kills import Stop, check_kills

OTHERS = {"files": (3, 3), "batches": (3, 3)}
STATELESS = {"files": (3, 3), "batches": (3, 4)}

BEFORE_RELEASE = {
    "after_offsets": Stop("after_offsets", {"totals": (2, 3), **OTHERS}),
    "before_release": Stop(
        "before_release", {"totals": (3, 3), **OTHERS}, snapshots="files", plain=True
    ),
    "after_release": Stop(
        "after_release", {"totals": (3, 3), **OTHERS}, version="1", snapshots="totals"
    ),
}
OF_STATE = {
    "before_flush": Stop("before_flush", {"totals": (2, 3), **STATELESS}),
    "after_local": Stop("after_local", {"totals": (2, 3), **STATELESS}, snapshots="totals"),
    "before_state": Stop(
        "before_state",
        {"totals": (2, 3), **STATELESS},
        version="1",
        plain=True,
        modes={"files": "asyncckpt"},
    ),
    "after_state": Stop(
        "after_state,before_snapshot", {"totals": (2, 3), **STATELESS}, transform=True
    ),
}


@pytest.mark.parametrize("stops", [BEFORE_RELEASE, OF_STATE], ids=["offsets", "state"])
def test_a_kill_at_each_point_up_to_the_state(
    server: ServerProcess, tmp_path: Path, stops: dict[str, Stop]
) -> None:
    check_kills(server, tmp_path / "job", stops)
