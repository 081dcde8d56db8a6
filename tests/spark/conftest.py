"""One server and one Spark session for all tests of this folder."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock.client import Client
from penstock.testing import delayed_store
from penstock_lab.measure.gpu_absence import gpu_absence
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import QUICK_START, ServerProcess
from support.spark.failpoints import Points


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    # Queries ask to be held for less; one test asks for more, to tell what ends a wait.
    folder = tmp_path_factory.mktemp("spark-server")
    process = ServerProcess(folder, "--set", "hold_ms_max=60000").start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def client(server: ServerProcess) -> Client:
    return server.client()


@pytest.fixture(scope="module", params=["cpu", "gpu"])
def device(request: pytest.FixtureRequest) -> str:
    """A device that workers can run everything on."""
    absence = gpu_absence() if request.param == "gpu" else None
    if absence is not None:
        pytest.skip(f"skipped, because {absence}")
    return str(request.param)


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that scripts faults of checkpoint locations under `faulty:///`."""
    return tmp_path_factory.mktemp("faults") / "script"


@pytest.fixture(scope="session")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    """Points of the plug-in at which its threads can be made to stand still."""
    return Points(tmp_path_factory.mktemp("failpoints") / "points")


@pytest.fixture(scope="session")
def spark(server: ServerProcess, faults: Path, points: Points) -> Iterator[SparkSession]:
    # The JVM takes it from its environment when it starts; other processes are not to have it.
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PENSTOCK_FAILPOINT", str(points.folder))
        session = make_session(server, faults)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def make_session(server: ServerProcess, faults: Path) -> SparkSession:
    return penstock.session(
        "local[2,3]",  # three attempts per task: one test fails two of them
        url=server.url,
        token=server.token,
        conf={
            **QUICK_START,
            **delayed_store("remote20"),
            **delayed_store("remote80"),
            **delayed_store("faulty", faults=faults),
        },
    )


_numbers = itertools.count(1)


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """A stream name no other test uses."""
    return lambda stem: f"{stem}_{next(_numbers)}"


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint")


@pytest.fixture
def admission(server: ServerProcess) -> Iterator[PlayedAdmission]:
    with PlayedAdmission(server.url) as played:
        yield played
