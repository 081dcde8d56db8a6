"""State that the checkpoint location has lost, with snapshots in the log and without."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.client import Client
from support.driving import START_S, finish, wait_for_queries
from support.exactly_once import Feeder, check
from support.processes import DriverProcess, ServerProcess, wait_until

PARTITIONS = 2
SOON = {
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "3",
    "spark.sql.streaming.stateStore.maintenanceInterval": "200ms",
}


def settings(snapshots: str, **more: str) -> dict[str, str]:
    return {**SOON, "spark.penstock.commit.snapshots": snapshots, **more}


def run_and_kill(
    server: ServerProcess, folder: Path, conf: dict[str, str], is_enough: Callable[[str], bool]
) -> tuple[str, int]:
    """A stateful query under load, killed when enough of it is done: its id, and the rows sent."""
    args = {"queries": ["totals"], "conf": conf}
    driver = DriverProcess(server, folder, args=args)
    try:
        query = wait_for_queries(driver, 1)["totals"]
        with Feeder(server.client()) as feeder:
            wait_until(
                "enough is done", lambda: not driver.is_running() or is_enough(query), START_S
            )
            assert driver.is_running(), driver.said()[-4000:]
            driver.kill()
    finally:
        driver.kill()
    return query, feeder.sent


def has_snapshots(client: Client, query: str) -> bool:
    """Every store has had several snapshots, and the newest one that is named is not the first."""
    stores = client.state(query).stores if client.markers(query) else ()
    return len(stores) == PARTITIONS and all(
        each.snapshot and each.needs_from > 6 and each.changes for each in stores
    )


def lose_all(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "state")


def lose_snapshots(checkpoint: Path) -> None:
    gone = [*checkpoint.glob("state/*/*/*.zip"), *checkpoint.glob("state/*/*/SSTs")]
    assert len(gone) >= 2 * PARTITIONS
    for path in gone:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


CASES = {
    "all of it": (lose_all, {}),
    "the snapshots": (lose_snapshots, {}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_query_goes_on_from_the_log_when_the_location_has_lost_its_state(
    server: ServerProcess, tmp_path: Path, case: str
) -> None:
    lose, more = CASES[case]
    conf = settings("log", **more)
    client = server.client()
    folder = tmp_path / "job"
    query, sent = run_and_kill(server, folder, conf, lambda query: has_snapshots(client, query))
    lose(folder / "checkpoints" / "totals")
    ids = finish(server, folder, queries=["totals"], conf=conf)
    assert ids == {"totals": query}
    assert check(client, ids) == {"totals": sent}
