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
ROWS = 500


@pytest.mark.parametrize(
    ("log_options", "points"),
    [
        # Of one job: each start goes on from what the kill before it left.
        pytest.param(
            None, ("after_offsets", "mid_task", "before_marker", "after_marker"), id="every step"
        ),
        pytest.param("driver_kills", ("after_appends",), id="after_appends, the log in JetStream"),
    ],
    indirect=["log_options"],
)
def test_a_kill_at_each_point_of_a_batch(
    server: ServerProcess, tmp_path: Path, points: tuple[str, ...]
) -> None:
    client = server.client()
    appends = 2 * len(points) + 6
    for number in range(appends):
        client.append("events", events(number * ROWS, ROWS))
    stops = dict(zip(range(3, appends, 2), points, strict=False))
    with TwinsReader(server.client()) as reader:
        for batch, point in stops.items():
            ids = kill_at(server, tmp_path / "job", point, batch)
        finish_and_check(server, tmp_path / "job", ids, stops, appends * ROWS)
    assert reader.rows == client.read("events").num_rows


def kill_at(server: ServerProcess, folder: Path, point: str, batch: int) -> dict[str, str]:
    """Kill the driver when both queries stand at the point in the batch; their ids."""
    client = server.client()
    # Six cores: both queries must be able to stand still in the middle of their tasks.
    driver = DriverProcess(
        server,
        folder,
        master="local[6]",
        failpoint=f"{point}@{batch}",
        args={"rows_per_batch": ROWS, "queries": QUERIES},
    )
    wait_until(
        f"batch {batch} of both queries is {point}",
        lambda: len(driver.stopped_queries()) == 2 or not driver.is_running(),
        START_S,
    )
    assert driver.is_running(), driver.said()[-4000:]
    ids = wait_for_queries(driver, 2)
    assert driver.stopped_queries() == set(ids.values())
    # The marker of a batch follows while the next one is computed.
    wait_until(
        f"batch {batch - 1} of both queries is marked",
        lambda: all(marked(client, query) >= batch - 1 for query in ids.values()),
    )
    driver.kill()
    for name, query in ids.items():
        assert marked(client, query) == (batch if point == "after_marker" else batch - 1)
        assert not (folder / "checkpoints" / name / "commits" / str(batch)).exists()
    check(client, ids)
    return ids


def finish_and_check(
    server: ServerProcess, folder: Path, ids: dict[str, str], stops: dict[int, str], rows: int
) -> None:
    client = server.client()
    assert finish(server, folder, rows_per_batch=ROWS, queries=QUERIES) == ids
    assert check(client, ids) == {"totals": rows, "twins": rows}
    for name, query in ids.items():
        for instance, (batch, point) in enumerate(stops.items(), 1):
            marker = client.markers(query, after_batch=batch - 1)[0]
            # A batch that was marked is not run again: its marker is that of the run before.
            assert marker.instance == (instance if point == "after_marker" else instance + 1)
            assert (folder / "checkpoints" / name / "commits" / str(batch)).exists()
