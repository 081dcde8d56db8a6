"""kill -9 of executors, a worker, the driver and the server of a real cluster, under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.cluster import CONF, Cluster
from support.driving import START_S, finish, marked_all, query_ids, wait_for_commits
from support.exactly_once import EVENTS, Feeder, check
from support.processes import DriverProcess, ServerProcess, wait_until


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path / "spark")
    yield started
    started.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    process.client().create("events", EVENTS, substreams=2, key="key")
    yield process
    process.stop()


def is_executor(process: psutil.Process) -> bool:
    try:
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    except psutil.Error:
        return False  # it has just ended


def executors(cluster: Cluster) -> list[psutil.Process]:
    return [
        child
        for worker in cluster.workers()
        for child in worker.children(recursive=True)
        if is_executor(child)
    ]


@pytest.fixture
def driver(cluster: Cluster, server: ServerProcess, tmp_path: Path) -> Iterator[DriverProcess]:
    started = DriverProcess(
        server, tmp_path / "job", master=cluster.url, supervised=True, args={"conf": CONF}
    )
    yield started
    if started.is_running():
        started.kill_job()
        started.kill()


def test_a_supervised_job_outlives_every_kind_of_loss(
    cluster: Cluster, server: ServerProcess, driver: DriverProcess
) -> None:
    client = server.client()

    def both_started() -> bool:
        assert driver.is_running(), driver.said()[-4000:]
        return len(query_ids(driver)) == 2

    def goes_on() -> None:
        # Two commits later, whatever the loss has cost in between.
        for _ in range(2):
            wait_for_commits(client, ids, marked_all(client, ids))
        check(client, ids)

    with Feeder(server.client()) as feeder:
        wait_until("both queries have started", both_started, START_S)
        ids = query_ids(driver)
        goes_on()
        executors(cluster)[0].kill()
        goes_on()
        cluster.kill_worker(1)
        goes_on()
        cluster.start_worker(1)
        server.kill()
        server.start()
        goes_on()
        driver.kill_job()
        goes_on()
        feeder.stop()
    driver.stop()
    cluster.stop()
    # On another machine, as it were: nothing of the cluster's folders is left to it.
    assert finish(server, driver.folder, rows_per_batch=100_000) == ids
    assert check(client, ids) == {"totals": feeder.sent, "copies": feeder.sent}
