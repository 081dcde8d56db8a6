"""kill -9 of the driver at each step of a batch: nothing lost, nothing twice afterwards.

A reader outside Spark looks on all the while: it never sees a batch in one of two streams alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.exactly_once import TwinsReader, check, events
from support.spark.kill_driver import (
    START_S,
    finish,
    marked,
    wait_for_queries,
)

QUERIES = ["totals", "twins"]


@pytest.mark.parametrize(
    ("log_options", "point"),
    [
        pytest.param(None, "after_offsets", id="after_offsets"),
        pytest.param(None, "mid_task", id="mid_task"),
        pytest.param("driver_kills", "after_appends", id="after_appends, the log in JetStream"),
        pytest.param(None, "before_marker", id="before_marker"),
        pytest.param(None, "after_marker", id="after_marker"),
    ],
    indirect=["log_options"],
)
def test_a_kill_at_each_point_of_a_batch(server: ServerProcess, tmp_path: Path, point: str) -> None:
    client = server.client()
    for i in range(8):
        client.append("events", events(i * 500, 500))
    with TwinsReader(server.client()) as reader:
        kill_and_finish(server, tmp_path / "job", point)
    assert reader.rows == client.read("events").num_rows


def kill_and_finish(server: ServerProcess, folder: Path, point: str) -> None:
    client = server.client()
    # Six cores: both queries must be able to stand still in the middle of their tasks.
    driver = DriverProcess(
        server,
        folder,
        master="local[6]",
        failpoint=f"{point}@3",
        args={"rows_per_batch": 500, "queries": QUERIES},
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

    assert finish(server, folder, rows_per_batch=500, queries=QUERIES) == ids
    assert check(client, ids) == {"totals": 4000, "twins": 4000}
    for name, query in ids.items():
        third = client.markers(query, after_batch=2)[0]
        # A batch that was marked is not run again: its marker is still the first run's.
        assert third["instance"] == (1 if is_marked else 2)
        assert (folder / "checkpoints" / name / "commits" / "3").exists()
