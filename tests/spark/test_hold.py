"""A commit that is held up: the next batch computes meanwhile, and nothing is seen before its turn.

state of batch 3 held       batch 4 computes          batch 5 is not begun
offsets of batch 4 held     batch 4 computes          no sink shows anything of batch 4
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.three_queries.job import NAMES
from support.spark.three_queries.run import (
    START_S,
    ThreeQueries,
    latest,
    query_status,
    wait_until_standing,
)

HELD = 3


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    yield process
    process.stop()


@pytest.fixture
def job(own_server: ServerProcess, tmp_path: Path) -> ThreeQueries:
    return ThreeQueries(own_server, tmp_path / "job")


def let_go(driver: DriverProcess) -> None:
    (driver.folder / "stopped" / "go").touch()


def wait_for_the_end(job: ThreeQueries, driver: DriverProcess) -> None:
    code = driver.wait(START_S)
    assert code == 0, driver.said()[-6000:]
    job.check_whole({name: str(query["id"]) for name, query in query_status(driver).items()})


def test_the_next_batch_computes_while_the_state_of_a_batch_is_made_durable(
    job: ThreeQueries,
) -> None:
    driver = job.start(f"before_state@{HELD}", available_now=True, watched=True)
    try:
        wait_until_standing(driver, set(NAMES))

        # Into the log the next batch ends: Spark has had all it does for it. Before foreachBatch it
        # stands at its gate. The file sink could skip the held batch if it were run again, so that
        # it waits for the state itself.
        def next_batch_computes() -> bool:
            now = query_status(driver)
            last = {name: query["batch"] for name, query in now.items()}
            return last == {"totals": HELD + 1, "batches": HELD, "files": HELD - 1} and all(
                now[name]["active_tasks"] > 0 for name in ("files", "batches")
            )

        wait_until("the next batch computes", next_batch_computes, START_S)
        visible = {"totals": HELD - 1, "batches": HELD, "files": HELD - 1}
        for name, query in query_status(driver).items():
            assert latest(job.checkpoint(name), "commits") <= HELD - 1
            assert latest(job.checkpoint(name), "offsets") <= HELD
            assert job.seen(name, query["id"]).batch == visible[name]
        assert next_batch_computes()
        let_go(driver)
        wait_for_the_end(job, driver)
    finally:
        driver.kill()


def test_nothing_of_a_batch_is_seen_before_its_offsets_are_durable(job: ThreeQueries) -> None:
    driver = job.start(f"before_release@{HELD}", available_now=True, watched=True)
    try:
        wait_until_standing(driver, set(NAMES))

        # All work of the batch is done that can be: Spark counts it as done where the log takes
        # its rows, and the function for foreachBatch and the file sink's tasks wait for rows.
        def batch_computes() -> bool:
            now = query_status(driver)
            return now["totals"]["batch"] in (HELD, HELD + 1) and all(
                now[name]["active_tasks"] > 0 for name in ("files", "batches")
            )

        wait_until("the batch computes", batch_computes, START_S)
        for name, query in query_status(driver).items():
            assert job.seen(name, query["id"]).batch == HELD - 1
            assert not (job.checkpoint(name) / "offsets" / str(HELD)).exists()
            assert latest(job.checkpoint(name), "commits") <= HELD - 1
        assert batch_computes()
        let_go(driver)
        wait_for_the_end(job, driver)
        for name in ("files", "batches"):
            assert query_status(driver)[name]["steps"]["wait at the gate"]["max_ms"] > 0
        assert query_status(driver)["totals"]["steps"].keys() >= {
            "local write",
            "append state",
            "marker",
        }
    finally:
        driver.kill()
