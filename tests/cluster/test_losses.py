"""kill -9 of executors, workers, the driver and the server of a real cluster, under load.

Before each kill the queries are brought to stand still at points of a commit, each at its own, so
that every kind of loss meets every point; and what all sinks show then is compared with what the
batches they have shown make.

    lost                    totals, in the log   files             batches, foreachBatch
    an executor             before_state         after_local       before_release
    a worker                before_marker        before_snapshot   after_local
    the server              before_marker
    the driver              before_state         before_snapshot   after_local
    driver and workers      before_marker        before_snapshot   before_release

`files` keeps its state as snapshots, so for it `before_snapshot` is what `before_state` is for the
others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.cluster import CONF, Cluster
from support.spark.failpoints import Points
from support.spark.three_queries.job import NAMES
from support.spark.three_queries.run import START_S, ThreeQueries, latest, query_status

# Tasks that stand still keep their cores.
CORES = 4
RESTARTED = "penstock run: "


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path / "spark", CORES)
    yield started
    started.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    yield process
    process.stop()


class Supervised:
    """The job of three queries under `penstock run`, on the cluster."""

    def __init__(self, cluster: Cluster, server: ServerProcess, folder: Path) -> None:
        self.job = ThreeQueries(server, folder, batches=400)
        self._points = Points(folder / "points")
        points = str(self._points.folder)
        conf = {
            **CONF,
            "spark.executor.cores": str(CORES),
            "spark.cores.max": str(2 * CORES),
            "spark.executorEnv.PENSTOCK_FAILPOINT": points,
        }
        self.driver: DriverProcess = self.job.start(
            points, master=cluster.url, supervised=True, conf=conf, snapshots="files"
        )
        self._wait("all queries have started", lambda: len(query_status(self.driver)) == len(NAMES))
        self.ids = {name: str(query["id"]) for name, query in query_status(self.driver).items()}

    def stand_still(self, **points: str) -> dict[str, dict[int, int]]:
        """Each query at its point: the batch it stands at, by process. All that is seen is right.

        A point may know the query by its run, which is another one after every restart.
        """
        held_batches: dict[str, dict[int, int]] = {}
        for name, point in points.items():

            def stands(name: str = name, point: str = point) -> bool:
                queries = (self.ids[name], str(query_status(self.driver)[name]["run"]))
                self._points.hold(point, queries)
                held_batches[name] = self._points.held(point, queries)
                return held_batches[name] != {}

            self._wait(f"{name} stands at {point}", stands)
        self.check_what_is_seen()
        return held_batches

    def go_on(self) -> None:
        """Two commits of each query later, whatever the loss has cost in between."""
        self._points.let_go()
        before = self._committed()
        self._wait(
            "every query has committed twice",
            lambda: all(now >= before[name] + 2 for name, now in self._committed().items()),
        )

    def check_what_is_seen(self) -> None:
        for name in NAMES:
            # A batch may be on its way to being seen.
            self.job.seen(name, self.ids[name], whole=True)

    def wait_until_done(self, name: str, batch: int) -> None:
        """Spark counts the batch as done: all its tasks have ended."""
        self._wait("the batch is done", lambda: query_status(self.driver)[name]["batch"] >= batch)

    @contextmanager
    def is_started_again(self, why: str = "") -> Iterator[None]:
        """What is done in between makes the job fail, for this reason, and its supervisor act."""
        sentences = (why, RESTARTED) if why else (RESTARTED,)
        before = {sentence: self._times_said(sentence) for sentence in sentences}
        yield
        self._points.let_go()
        self._wait(
            f"{sentences} are said",
            lambda: all(self._times_said(said) > times for said, times in before.items()),
        )
        self.go_on()

    def _times_said(self, sentence: str) -> int:
        return self.driver.said().count(sentence)

    def _committed(self) -> dict[str, int]:
        return {name: latest(self.job.checkpoint(name), "commits") for name in NAMES}

    def _wait(self, goal: str, condition: Callable[[], bool]) -> None:
        wait_until(goal, lambda: condition() or not self.driver.is_running(), START_S)
        assert self.driver.is_running(), self.driver.said()[-4000:]


def test_a_supervised_job_with_three_sinks_outlives_every_kind_of_loss(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    run = Supervised(cluster, server, tmp_path / "three")
    try:
        run.go_on()
        lose_an_executor(run)
        lose_a_worker(run, cluster)
        lose_the_server(run, server)
        lose_the_driver(run)
        run.stand_still(totals="before_marker", files="before_snapshot", batches="before_release")
    finally:
        if run.driver.is_running():
            run.driver.kill_job()
            run.driver.kill()
        cluster.stop()
    run.check_what_is_seen()
    # On another machine, as it were: nothing of the cluster's folders is left to it.
    run.job.finish(snapshots="files")
    run.job.check_whole(run.ids)


def first(standing: dict[int, int]) -> tuple[int, int]:
    """The process with the oldest of the batches that stand still, and that batch."""
    return min(standing.items(), key=lambda each: each[1])


def lose_an_executor(run: Supervised) -> None:
    """It has state that is nowhere else, of a batch whose tasks have ended: the driver stops."""
    standing = run.stand_still(totals="before_state", files="after_local", batches="before_release")
    executor, batch = first(standing["totals"])
    # Until then Spark would run the tasks of the executor again, and nothing would be lost.
    run.wait_until_done("totals", batch)
    with run.is_started_again(f"an executor was lost with state of batch {batch} "):
        psutil.Process(executor).kill()


def lose_a_worker(run: Supervised, cluster: Cluster) -> None:
    """Its executor has state that tasks on the other one wait for: these fail."""
    standing = run.stand_still(
        totals="before_marker", files="before_snapshot", batches="after_local"
    )
    executor, batch = first(standing["files"])
    worker = cluster.executors()[executor]
    with run.is_started_again(f"state of batch {batch} is lost with its executor"):
        cluster.kill_worker(worker)
    cluster.start_worker(worker)


def lose_the_server(run: Supervised, server: ServerProcess) -> None:
    run.stand_still(totals="before_marker")
    server.kill()
    server.start()
    run.go_on()


def lose_the_driver(run: Supervised) -> None:
    run.stand_still(totals="before_state", files="before_snapshot", batches="after_local")
    with run.is_started_again():
        run.driver.kill_job()
