"""GPU absence: why nothing can be measured on a GPU here; asked in a process of its own.

A process that has asked CUDA anything must not be forked any more, and benchmarks start many.
"""

from __future__ import annotations

import subprocess
import sys

from penstock_lab.experiment.needs import is_installed

ASKED = """
import cupy
count = cupy.cuda.runtime.getDeviceCount()
cupy.zeros(1).sum().get()
print(count)
"""
OPERATIONS = "penstock.devices.gpu"
TIMEOUT_S = 120.0
NO_CUPY = "CuPy is not installed; install it with: pip install 'penstock[gpu]'"


def gpu_absence() -> str | None:
    """A sentence that says why there is no GPU to measure on; None if there is one."""
    if not is_installed(OPERATIONS):
        return "this build of penstock has no operations for a GPU"
    if not is_installed("cupy"):
        return f"there is no GPU that Python could use: {NO_CUPY}"
    try:
        asked = subprocess.run(
            [sys.executable, "-c", ASKED],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the GPU did not answer within {TIMEOUT_S:g} s"
    if asked.returncode:
        said = asked.stderr.strip().splitlines()
        return f"no GPU answers here: {said[-1] if said else 'CuPy said nothing'}"
    return None
