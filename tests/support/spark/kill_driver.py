"""Running the job of driver_job.py and looking at what it has committed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.client import Client
from support.servers.processes import DriverProcess, ServerProcess, wait_until

START_S = 300.0
"""How long a driver may take to start and commit; machines are slow and busy."""


def query_ids(driver: DriverProcess) -> dict[str, str]:
    queries: Any = driver.status().get("queries", {})
    return {name: status["id"] for name, status in queries.items()}


def marked(client: Client, query: str) -> int:
    """The last batch of a query that is visible, -1 for none."""
    markers = client.markers(query)
    return int(markers[-1].batch) if markers else -1


def marked_all(client: Client, ids: Mapping[str, str]) -> dict[str, int]:
    return {name: marked(client, query) for name, query in ids.items()}


def wait_for_queries(driver: DriverProcess, count: int) -> dict[str, str]:
    """The ids of the job's queries, once all of them have started."""

    def started() -> bool:
        assert driver.is_running(), driver.said()[-4000:]
        return len(query_ids(driver)) == count

    wait_until("the queries have started", started, START_S)
    return query_ids(driver)


def wait_for_commits(client: Client, ids: Mapping[str, str], before: Mapping[str, int]) -> None:
    """Returns once every query has committed a batch later than the one in `before`."""

    def later() -> bool:
        now = marked_all(client, ids)
        return all(now[name] > before.get(name, -1) for name in ids)

    wait_until("every query commits", later, START_S)


def finish(server: ServerProcess, folder: Path, **args: object) -> dict[str, str]:
    """Runs the job over the rest of the input; returns the ids of its queries."""
    driver = DriverProcess(server, folder, args={"available_now": True, **args})
    code = driver.wait(START_S)
    assert code == 0, driver.said()[-4000:]
    return query_ids(driver)
