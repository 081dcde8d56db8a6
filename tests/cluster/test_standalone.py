"""Source and sink on a real standalone cluster: a master and two workers on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import CONF, Cluster
from support.driving import START_S
from support.exactly_once import EVENTS, check, events
from support.processes import DriverProcess, ServerProcess


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
        args={"conf": CONF, "available_now": True, "rows_per_batch": 1000},
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    queries = driver.status()["queries"]
    assert isinstance(queries, dict)
    ids = {name: told["id"] for name, told in queries.items()}
    assert check(server.client(), ids) == {"totals": 3000, "copies": 3000}


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
    others = 1 + len(client.markers(query["query"]))
    lost = client.server()["latest"] - client.describe("events").latest - shown_entries - others
    assert lost > 0
