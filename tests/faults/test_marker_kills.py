"""kill -9 of the driver at the steps of a commit from the rows of a batch on."""

from __future__ import annotations

from pathlib import Path

from support.servers.processes import ServerProcess
from support.spark.commit_kills import Stop, check_kills

ENDED = {"files": (4, 4), "batches": (4, 4)}

STOPS = {
    "mid_task": Stop("mid_task", {"totals": (2, 3)}, snapshots="totals"),
    "after_appends": Stop("after_appends", {"totals": (2, 3)}),
    "before_end": Stop("before_marker,before_commit", {"totals": (3, 3), **ENDED}),
    "before_end_plain": Stop(
        "before_marker,before_commit",
        {"totals": (3, 3), **ENDED},
        version="1",
        plain=True,
    ),
    "after_marker": Stop("after_marker", {"totals": (4, 4)}, version="1"),
    "before_copy": Stop("before_copy", {"totals": (4, 13)}, again="in_recovery"),
    "before_delete": Stop(
        "before_delete",
        {"totals": (5, 13), "files": (5, 13), "batches": (5, 13)},
        retained=2,
    ),
}


def test_a_kill_at_each_point_from_the_rows_on(server: ServerProcess, tmp_path: Path) -> None:
    check_kills(server, tmp_path / "job", STOPS)
