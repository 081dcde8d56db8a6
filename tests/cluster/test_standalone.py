"""Source and sink on a real standalone cluster: a master and two workers on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from support.exactly_once import EVENTS, check, events
from support.processes import DriverProcess, ServerProcess, free_port, wait_until


class Cluster:
    """`spark-class` processes. Each worker has a loopback address, so a host, of its own."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._spark = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        port, web = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._start(
            "master",
            "127.0.0.1",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)),
        )
        wait_until("the master is up", lambda: "I have been elected leader" in self.log("master"))
        for number in (1, 2):
            host = f"127.0.0.{number}"
            self._start(
                f"worker{number}",
                host,
                "org.apache.spark.deploy.worker.Worker",
                *("--host", host, "--cores", "1", "--memory", "1g", "--webui-port", "0"),
                *("--work-dir", str(folder / f"work{number}"), self.url),
            )
        wait_until(
            "both workers are registered",
            lambda: all("Successfully registered" in self.log(f"worker{n}") for n in (1, 2)),
        )

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def _start(self, name: str, host: str, main: str, *args: str) -> None:
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": host,
            "SPARK_HOME": str(self._spark),
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self._folder / f"{name}.log").open("wb") as out:
            self._processes.append(
                subprocess.Popen(
                    [str(self._spark / "bin" / "spark-class"), main, *args],
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=environment,
                )
            )


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


CONF = {
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
}


def test_both_queries_run_on_two_workers(
    cluster: Cluster, server: ServerProcess, tmp_path: Path
) -> None:
    driver = DriverProcess(
        server,
        tmp_path / "job",
        master=cluster.url,
        args={"conf": CONF, "available_now": True, "rows_per_batch": 1000},
    )
    assert driver.wait(240) == 0, driver.said()[-4000:]
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
    assert driver.wait(240) == 0, driver.said()[-4000:]
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
