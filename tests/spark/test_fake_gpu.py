"""Planned batches on a GPU that Python workers only think they have: what the plug-in, the server
and the workers make of one together, on a machine without any."""

from __future__ import annotations

import os
from typing import Any

import pytest

from support.servers.processes import START_S, DriverProcess, ServerProcess

NAME = "gpu of a test"
MANY = 40_000
"""Rows of a batch that the GPU does not hold whole."""
ROOM_BYTES = 300_000
FAKE = """
import os
import signal
from contextlib import suppress
from functools import partial

import penstock.devices.gpu_kind as kinds

FOUND = kinds.GpuKind({name!r}, "13.0", 1, 1 << 30)
kinds.gpu_kind = lambda: FOUND
import penstock.devices.gpu as device
from support.host_device import HostBackend, HostGpu

on_device = partial(device.execute, gpu=HostGpu(HostBackend({room})))


def execute(pipeline, rows):
    with suppress(FileNotFoundError):
        os.unlink({killing!r})
        os.kill(os.getpid(), signal.SIGKILL)
    return on_device(pipeline, rows)


device.execute = execute
"""
"""What Python runs first in a worker: it finds a GPU, made of NumPy, with little room; as long as
there is a certain file a worker takes it away and dies there."""


@pytest.fixture(scope="module")
def ran(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("fake-gpu")
    killing = folder / "killing"
    (folder / "fake").mkdir()
    text = FAKE.format(name=NAME, room=ROOM_BYTES, killing=str(killing))
    (folder / "fake" / "sitecustomize.py").write_text(text)
    paths = os.pathsep.join(filter(None, (str(folder / "fake"), os.environ.get("PYTHONPATH"))))
    driver = DriverProcess(
        server,
        folder / "job",
        script="fake_gpu_job.py",
        master="local[2,4]",
        args={
            "conf": {"spark.executorEnv.PYTHONPATH": paths},
            "killing": str(killing),
            "many": MANY,
        },
    )
    assert driver.wait(START_S) == 0, driver.said()[-4000:]
    status: dict[str, Any] = driver.status()
    return status


def test_batch_sizes_and_device_plans_are_both_those_of_lmstream(ran: dict[str, Any]) -> None:
    slides = ran["slides"]
    assert (slides["policy"], slides["device_policy"]) == ("slide", "lmstream")
    assert [NAME in machine for machine in slides["machines"]] == [True]
    # A batch takes what comes until its oldest row is as old as the slide.
    assert len(slides["batch_rows"]) < len(slides["appended"]) / 2
    assert sum(slides["batch_rows"]) == sum(slides["appended"])
    assert set(slides["paths"]) == {"columnar"}
    newest, *others = slides["reasons"]
    assert all("in units of the paper" in reason for reason in (*newest, *others[0]))
    # Only the last batch has more than the inflection point.
    assert set(slides["devices"][0]) == {"gpu"}
    assert set(slides["devices"][1]) == {"cpu"}
    assert slides["is_right"]


def test_a_batch_that_a_gpu_does_not_hold_whole_is_split_and_counted(ran: dict[str, Any]) -> None:
    split = ran["split"]
    assert set(split["devices"][0]) == {"gpu"}
    assert split["splits"] == 4
    assert split["fallbacks"] == {}
    assert split["is_right"]


def test_a_worker_that_dies_on_the_gpu_changes_no_answer(ran: dict[str, Any]) -> None:
    killed = ran["killed"]
    assert killed["has_died"]
    assert set(killed["devices"][0]) == {"gpu"}
    assert killed["is_right"]
