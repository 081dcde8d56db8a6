"""Source and sink on a real standalone cluster: a master and two workers on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.servers.processes import DriverProcess, ServerProcess, wait_until
from support.spark.cluster import CONF, Cluster
from support.spark.exactly_once import EVENTS, Feeder, check, events
from support.spark.failpoints import Points
from support.spark.kill_driver import START_S
from support.spark.three_queries.run import ThreeQueries, latest, query_status

KEY = "spark.penstock.prefetch"
HINTING = {
    # A cache that has not room for all keys, so that there is something to fetch in every batch.
    "conf": {**CONF, KEY: "C", f"{KEY}.cache.bytes": "2000", f"{KEY}.hot.threshold": "255"},
    "rows_per_batch": 100,
    "queries": ["totals"],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    started = Cluster(tmp_path_factory.mktemp("cluster") / "spark")
    yield started
    started.stop()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    process = ServerProcess(tmp_path / "data").start()
    client = process.client()
    client.create("events", EVENTS, substreams=2, key="key")
    for i in range(6):
        client.append("events", events(i * 500, 500))
    yield process
    process.stop()


def test_both_queries_run_on_two_workers(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    driver = DriverProcess(
        server,
        tmp_path / "job",
        master=cluster.url,
        args={
            "conf": {**CONF, "spark.broadcast.compress": "false"},
            "available_now": True,
            "rows_per_batch": 1000,
            "reports_configuration": True,
        },
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    queries = driver.status()["queries"]
    assert isinstance(queries, dict)
    ids = {name: status["id"] for name, status in queries.items()}
    assert check(server.client(), ids) == {"totals": 3000, "copies": 3000}
    # Executors are sent Hadoop's configuration without the notes of where its properties are from:
    # twice a batch, for reading the state of `totals` and for writing it.
    configuration = driver.status()["configuration"]
    assert isinstance(configuration, dict)
    assert configuration["noted_sources"] == 0
    assert 0 < configuration["broadcast_max"] < 2 * configuration["bytes_with_notes"] * 3 / 4


def test_hints_reach_the_state_of_another_executor(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    driver = DriverProcess(server, tmp_path / "job", master=cluster.url, args=HINTING)
    try:
        # The driver passes on what one executor hints for the other's state, which takes it.
        counted = wait_for_hints(driver)
        assert counted["arrived"] <= counted["passed_on"]
        wait_until_counted(driver, server, 3000)
    finally:
        driver.stop()


def test_answers_stay_when_an_executor_is_lost_with_hints_on_their_way(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    driver = DriverProcess(
        server, tmp_path / "job", master=cluster.url, supervised=True, args=HINTING
    )
    try:
        with Feeder(server.client(), rows=20, every_s=0.2) as feeder:
            # Every batch hints for the other executor: when one is lost, blocks are on their way.
            before = wait_for_hints(driver)
            lost, *_ = cluster.executors()
            psutil.Process(lost).kill()
            wait_until(
                "there are two executors again",
                lambda: len(cluster.executors().keys() - {lost}) == 2 or not driver.is_running(),
                START_S,
            )
            # If state was lost with it, the job is started again and counts anew.
            wait_for_hints(driver, other_than=before)
            feeder.stop()
        wait_until_counted(driver, server, 3000 + feeder.sent)
    finally:
        if driver.is_running():
            driver.kill_job()
            driver.kill()


def wait_for_hints(
    driver: DriverProcess, other_than: dict[str, int] | None = None
) -> dict[str, int]:
    """Returns once hints were taken by the other executor, and state was read: their counts."""

    def hints() -> dict[str, int]:
        told_hints = driver.status().get("hints", {})
        assert isinstance(told_hints, dict)
        return told_hints

    def hints_arrived() -> bool:
        counted = hints()
        return counted.get("arrived", 0) > 0 < counted["used"] and counted != other_than

    wait_until(
        "hints were taken by the other executor, and state was read",
        lambda: hints_arrived() or not driver.is_running(),
        START_S,
    )
    assert driver.is_running(), driver.said()[-4000:]
    return hints()


def wait_until_counted(driver: DriverProcess, server: ServerProcess, count: int) -> None:
    """Returns once so many events are counted; what is seen on the way is right."""
    queries = driver.status()["queries"]
    assert isinstance(queries, dict)
    ids, client = {"totals": queries["totals"]["id"]}, server.client()
    wait_until(
        "all events are counted",
        lambda: check(client, ids)["totals"] == count or not driver.is_running(),
        START_S,
    )
    assert driver.is_running(), driver.said()[-4000:]


def test_what_a_speculative_attempt_appended_is_never_seen(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    speculation = {
        **CONF,
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.5",
        "spark.speculation.minTaskRuntime": "500ms",
    }
    driver = DriverProcess(
        server,
        tmp_path / "job",
        master=cluster.url,
        args={"conf": speculation, "available_now": True, "queries": ["slow"]},
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    client = server.client()
    shown = client.read("slow")
    assert sorted(shown["n"].to_pylist()) == list(range(3000))
    attempts = set(shown["attempt"].to_pylist())
    assert attempts == {0, 1}, "no task was run a second time"
    # The first attempt of the slow task had sent megabytes of rows before it lost: the log holds
    # more entries than the rows fed, the rows shown, and the query's take-over and markers.
    shown_entries = sum(1 for _ in client.scan("slow", 0))
    (query,) = client.queries()
    others = 1 + len(client.markers(query.query))
    lost = client.server().latest - client.describe("events").latest - shown_entries - others
    assert lost > 0


def test_a_load_on_another_executor_waits_for_state_that_is_on_its_way(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    job = ThreeQueries(server, tmp_path / "three", batches=60)
    points = Points(tmp_path / "points")
    driver = job.start(
        str(points.folder),
        master=cluster.url,
        conf={
            **CONF,
            "spark.locality.wait": "0s",
            "spark.executorEnv.PENSTOCK_FAILPOINT": str(points.folder),
        },
        queries=["totals", "batches"],
    )

    def batch_of(query: str) -> int:
        return int(query_status(driver).get(query, {"batch": -1})["batch"])

    def stand_still(point: str, query: str, only: str = "") -> dict[int, int]:
        points.hold(point, [query], only)
        wait_until(
            f"the query stands at {point}",
            lambda: points.held(point, [query], only) != {} or not driver.is_running(),
            START_S,
        )
        return points.held(point, [query], only)

    try:
        wait_until("both have begun", lambda: batch_of("totals") > 0 < batch_of("batches"), START_S)
        totals, batches = query_status(driver)["totals"], query_status(driver)["batches"]
        batch = batch_of("batches") + 5
        # The state of a batch stays on the executors that wrote it, and the next one does not run.
        points.hold("after_offsets", [batches["id"]], f"batch={batch + 1}")
        writers = stand_still("before_state", batches["id"], f"batch={batch}")
        stand_still("after_offsets", batches["id"], f"batch={batch + 1}")
        # The only core of one of them is taken: the other one runs all of the next batch.
        writer = next(iter(writers))
        stand_still("mid_task", totals["id"], f"pid={writer}")
        points.let_go("after_offsets")
        (reader,) = stand_still("before_arrival", batches["run"])
        assert reader != writer
        points.let_go()
        wait_until(
            "the next batch is committed",
            lambda: latest(job.checkpoint("batches"), "commits") > batch,
            START_S,
        )
        assert query_status(driver)["batches"]["run"] == batches["run"]
        # Tasks at the gate of this query hear from the driver when its offsets are durable.
        assert "the driver did not answer" not in cluster.executors_said()
        assert driver.is_running(), driver.said()[-4000:]
    finally:
        driver.kill()
    job.seen("batches", batches["id"], whole=True)


def test_a_batch_that_is_done_when_its_query_and_spark_are_stopped_is_not_run_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Its state is still on the executors when these are told to end; the source is not ours."""
    last = 1
    checkpoint, given = tmp_path / "checkpoint", tmp_path / "input"
    given.mkdir()
    rows = pa.table({"n": pa.array(range(10), pa.int64())})
    pq.write_table(rows, given / "0.parquet")
    points = Points(tmp_path / "points")
    driver = DriverProcess(
        ServerProcess(tmp_path / "no-server"),
        tmp_path / "job",
        script="stopping_job.py",
        master=cluster.url,
        args={
            "conf": {**CONF, "spark.executorEnv.PENSTOCK_FAILPOINT": str(points.folder)},
            "input": str(given),
            "checkpoint": str(checkpoint),
            "last": last,
        },
    )

    def await_job(state: str, is_there: Callable[[], bool]) -> None:
        wait_until(state, lambda: is_there() or not driver.is_running(), START_S)
        assert driver.is_running(), driver.said()[-4000:]

    try:
        await_job("the query has begun", lambda: "query" in driver.status())
        query = str(driver.status()["query"])
        ends = cluster.ends()
        points.hold("before_state", [query], f"batch={last}")
        pq.write_table(rows, given / f"{last}.parquet")
        await_job(
            "state is held", lambda: points.held("before_state", [query], f"batch={last}") != {}
        )
        await_job("executors are told to end", lambda: cluster.ends() > ends)
        points.let_go()
        assert driver.wait(START_S) == 0, driver.said()[-4000:]
    finally:
        driver.kill()
    assert latest(checkpoint, "offsets") == last
    assert latest(checkpoint, "commits") == last
    for partition in (checkpoint / "state" / "0").glob("[0-9]*"):
        assert list(partition.glob(f"{last + 1}_*.changelog")), f"state of {partition.name} is lost"
