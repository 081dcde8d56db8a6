"""kill -9 of the server under load: drivers wait for it, and nothing is lost or doubled."""

from __future__ import annotations

import random
import time
from pathlib import Path

from support.servers.processes import DriverProcess, ServerProcess
from support.spark.exactly_once import Feeder, check
from support.spark.kill_driver import finish, marked_all, wait_for_commits, wait_for_queries

KILLS = 5


def test_five_kills_of_the_server_under_load(server: ServerProcess, tmp_path: Path) -> None:
    chance = random.Random(7)
    client = server.client()
    folder = tmp_path / "job"
    with Feeder(server.client()) as feeder:
        driver = DriverProcess(server, folder)
        ids = wait_for_queries(driver, 2)
        for _ in range(KILLS):
            wait_for_commits(client, ids, marked_all(client, ids))
            time.sleep(chance.uniform(0.0, 0.5))
            server.kill()
            time.sleep(chance.uniform(0.0, 0.5))
            server.start()
            check(client, ids)
        assert driver.is_running(), driver.said()[-4000:]
        driver.kill()
        feeder.stop()
    finish(server, folder, rows_per_batch=100_000)
    assert check(client, ids) == {"totals": feeder.sent, "copies": feeder.sent}
    # The driver was killed once, at the end: the server's deaths cost no restart of a query.
    assert all(client.query(query).instance == 2 for query in ids.values())
