"""Two drivers on one query: the one that started later goes on, the older one is fenced."""

from __future__ import annotations

from pathlib import Path

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.exactly_once import Feeder, check
from support.spark.kill_driver import START_S, finish, marked, query_ids


def test_the_older_of_two_drivers_is_fenced(server: ServerProcess, tmp_path: Path) -> None:
    client = server.client()
    folder = tmp_path / "job"
    args: dict[str, object] = {"queries": ["copies"]}
    with Feeder(server.client()) as feeder:
        older = DriverProcess(server, folder, args=args)
        wait_until("the first driver commits", lambda: running_well(older), START_S)
        ids = query_ids(older)
        newer = DriverProcess(server, folder, args=args)
        assert older.wait(START_S) == 3, older.said()[-3000:]
        assert "[penstock: fenced]" in str(older.status()["error"])
        seen = marked(client, ids["copies"])
        wait_until(
            "the second driver goes on", lambda: marked(client, ids["copies"]) > seen + 3, START_S
        )
        newer.kill()
        feeder.stop()
    check(client, ids)
    finish(server, folder, rows_per_batch=100_000, **args)
    assert check(client, ids) == {"copies": feeder.sent}


def running_well(driver: DriverProcess) -> bool:
    queries = driver.status().get("queries", {})
    assert isinstance(queries, dict)
    return any(status["batch"] >= 2 for status in queries.values())
