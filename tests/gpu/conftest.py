"""Devices that tests of GPU operations run on: NumPy in place of one always, a GPU where one is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.devices.gpu.execution import Gpu
from penstock.devices.gpu.worker_gpu import WorkerGpu
from penstock.devices.pipeline import DeviceRefused
from support.host_device import HostGpu
from support.skip_reasons import NO_GPU


@pytest.fixture(scope="session", params=["numpy", "cupy"])
def gpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gpu]:
    """A device to run steps on."""
    if request.param == "numpy":
        yield HostGpu()
        return
    worker = WorkerGpu(tmp_path_factory.mktemp("slots"))
    try:
        with worker.used(workers=1):
            pass
    except DeviceRefused as refusal:
        pytest.skip(f"{NO_GPU}: {refusal.text}")
    yield worker
    worker.close()
