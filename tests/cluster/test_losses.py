"""kill -9 of executors, a worker, the driver and the server of a real cluster, under load."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.cluster import CONF, Cluster
from support.processes import ServerProcess, wait_until
from support.three_driving import START_S, ThreeQueries, latest, told
from support.three_queries import NAMES


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path / "spark")
    yield started
    started.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
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


def test_a_supervised_job_with_three_sinks_outlives_every_kind_of_loss(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    job = ThreeQueries(server, tmp_path / "three", batches=400)
    driver = job.start(None, master=cluster.url, supervised=True, conf=CONF, snapshots="files")

    def committed() -> dict[str, int]:
        return {name: latest(job.checkpoint(name), "commits") for name in NAMES}

    def goes_on() -> None:
        # Two commits of each query later, whatever the loss has cost in between.
        before = committed()
        wait_until(
            "every query has committed twice",
            lambda: (
                all(now >= before[name] + 2 for name, now in committed().items())
                or not driver.is_running()
            ),
            START_S,
        )
        assert driver.is_running(), driver.said()[-4000:]
        for name in ("totals", "files"):
            job.seen(name, ids[name])

    try:
        wait_until("all queries have started", lambda: len(told(driver)) == len(NAMES), START_S)
        ids = {name: str(query["id"]) for name, query in told(driver).items()}
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
        driver.stop()
    finally:
        if driver.is_running():
            driver.kill_job()
            driver.kill()
    cluster.stop()
    # On another machine, as it were: nothing of the cluster's folders is left to it.
    job.finish(snapshots="files")
    job.check_whole(ids["totals"])
