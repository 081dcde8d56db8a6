"""kill -9 of the server between an answer to a task and the sync that the marker would bring."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.exactly_once import EVENTS, check, events
from support.spark.kill_driver import START_S, query_ids, wait_for_queries

EARLY = {"spark.penstock.commit.earlyAnswers": "true"}
ROWS = 4_000
BATCH = 1_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that syncs nothing by itself while a test looks."""
    process = ServerProcess(tmp_path / "data", "--set", "unsynced_ms_max=10000").start()
    process.client().create("events", EVENTS, substreams=2, key="key")
    yield process
    process.stop()


def test_what_was_answered_and_lost_is_computed_again_once(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Input is there before the job: nobody but its queries brings the server to sync.

    task answered ─► query stands ─► server killed, started ─► marker refused ─► job again
    """
    client, folder = server.client(), tmp_path / "job"
    for first in range(0, ROWS, BATCH):
        client.append("events", events(first, BATCH))
    driver = DriverProcess(
        server,
        folder,
        failpoint="after_appends@1",
        supervised=True,
        args={"conf": EARLY, "available_now": True, "rows_per_batch": BATCH},
    )
    try:
        ids = wait_for_queries(driver, 2)
        wait_until(
            "both queries stand", lambda: driver.stopped_queries() >= set(ids.values()), START_S
        )
        server.kill()
        server.start()
        check(client, ids)
        (folder / "stopped" / "go").touch()
        assert driver.wait(START_S) == 0, driver.said()[-4000:]
        assert "[penstock: appends_lost]" in driver.said()
        assert check(client, query_ids(driver)) == {"totals": ROWS, "copies": ROWS}
        assert max(client.query(query).instance for query in ids.values()) == 2
    finally:
        driver.kill()
