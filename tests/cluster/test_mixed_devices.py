"""A standalone cluster on which Python workers of one executor say that they have a GPU, and those
of the other that they have none: no operation is planned for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.servers.processes import DriverProcess, ServerProcess
from support.spark.cluster import CONF, Cluster
from support.spark.hidden_gpus import HIDDEN
from support.spark.kill_driver import START_S

NAME = "gpu of a test"
FAKE = f"""
import os
if "/work1/" in os.getcwd() + "/":
    import penstock.devices.gpu_kind as kinds
    FOUND = kinds.GpuKind({NAME!r}, "13.0", 1, 1 << 30)
    kinds.gpu_kind = lambda: FOUND
"""
"""What Python runs first in a process of an executor: on the first worker's it finds a GPU."""


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("mixed")
    (folder / "fake").mkdir()
    (folder / "fake" / "sitecustomize.py").write_text(FAKE)
    cluster = Cluster(folder / "spark")
    server = ServerProcess(folder / "data").start()
    paths = os.pathsep.join(filter(None, (str(folder / "fake"), os.environ.get("PYTHONPATH"))))
    driver = DriverProcess(
        server,
        folder / "job",
        script="mixed_devices_job.py",
        master=cluster.url,
        args={
            "conf": {**CONF, **HIDDEN, "spark.executorEnv.PYTHONPATH": paths},
            "executors": 2,
        },
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    yield driver.status()
    server.stop()
    cluster.stop()


def test_one_machine_without_a_gpu_keeps_all_operations_on_the_cpu(
    planned: dict[str, Any],
) -> None:
    with_gpu, without = sorted(planned["machines"], key=lambda machine: NAME not in machine)
    assert with_gpu.startswith("1 x ")
    assert NAME in with_gpu
    assert without.endswith("no GPU")
    assert planned["paths"] == ["columnar"] * 3
    assert len(planned["rows"]) == 4
    assert set(planned["devices"]) == {"cpu"}
    assert set(planned["reasons"]) == {"1 of 2 machines have no GPU"}
