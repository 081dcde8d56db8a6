"""The kind of this machine, named as the plug-in names it in its questions to the server."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from penstock.devices.calibration import Machine
from penstock.devices.gpu_kind import gpu_kind

PROCESSORS = Path("/proc/cpuinfo")
MODEL_NAME = "model name"
NAME_MAX = 200


def this_machine() -> Machine:
    """The model of the CPU, cores, model of the GPU and version of CUDA."""
    gpu = gpu_kind()
    cores = len(os.sched_getaffinity(0))
    if gpu is None:
        return Machine(_cpu(), cores)
    return Machine(_cpu(), cores, gpu.name, gpu.cuda)


def _cpu() -> str:
    try:
        lines = PROCESSORS.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith(MODEL_NAME))
    return next(names, platform.machine() or "a processor without a name")[:NAME_MAX]
