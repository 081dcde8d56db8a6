"""kill -9 of the driver at each step of a batch: nothing lost, nothing twice afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.driving import (
    START_S,
    finish,
    marked,
    wait_for_queries,
)
from support.exactly_once import check, events
from support.processes import DriverProcess, ServerProcess, wait_until

POINTS = ["after_offsets", "mid_task", "after_appends", "before_marker", "after_marker"]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_each_point_of_a_batch(server: ServerProcess, tmp_path: Path, point: str) -> None:
    client = server.client()
    for i in range(8):
        client.append("events", events(i * 500, 500))
    folder = tmp_path / "job"
    # Four cores: both queries must be able to stand still in the middle of their tasks.
    driver = DriverProcess(
        server,
        folder,
        master="local[4]",
        failpoint=f"{point}@3",
        args={"rows_per_batch": 500},
    )
    wait_until(
        f"batch 3 of both queries is {point}",
        lambda: len(driver.stopped_queries()) == 2 or not driver.is_running(),
        START_S,
    )
    assert driver.is_running(), driver.said()[-4000:]
    ids = wait_for_queries(driver, 2)
    assert driver.stopped_queries() == set(ids.values())
    # The marker of a batch follows while the next one is computed.
    wait_until(
        "batch 2 of both queries is marked",
        lambda: all(marked(client, query) >= 2 for query in ids.values()),
    )
    driver.kill()
    is_marked = point == "after_marker"
    for name, query in ids.items():
        assert marked(client, query) == (3 if is_marked else 2)
        assert not (folder / "checkpoints" / name / "commits" / "3").exists()
    check(client, ids)

    assert finish(server, folder, rows_per_batch=500) == ids
    assert check(client, ids) == {"totals": 4000, "copies": 4000}
    for name, query in ids.items():
        third = client.markers(query, after_batch=2)[0]
        # A batch that was marked is not run again: its marker is still the first run's.
        assert third["instance"] == (1 if is_marked else 2)
        assert (folder / "checkpoints" / name / "commits" / "3").exists()
