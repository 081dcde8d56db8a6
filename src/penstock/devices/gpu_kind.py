"""The kind of GPU that a machine has, as planning tells machines apart; no context is made for it.

The driver's library is asked, in the process of a worker or in one that ends at once: a process
that has asked must not fork workers.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib.util import find_spec

import msgspec

LIBRARY = "libcuda.so.1"
NEEDED = ("penstock.devices.gpu", "cupy")
"""Modules without which a worker can do nothing with a GPU."""
NAME_BYTES = 256


class GpuKind(msgspec.Struct, frozen=True):
    """The GPUs of a machine: the name and memory of the first, and the highest version of CUDA that
    their driver takes."""

    name: str
    cuda: str
    count: int
    bytes: int


@lru_cache(maxsize=1)
def gpu_kind() -> GpuKind | None:
    """The GPUs of this machine; None without one, its driver or the packages to use it."""
    if any(find_spec(module) is None for module in NEEDED):
        return None
    try:
        return _asked(ctypes.CDLL(LIBRARY))
    except (OSError, AttributeError):
        return None


def _asked(library: ctypes.CDLL) -> GpuKind | None:
    """The answers of the driver's library; None if it has an error for one of them."""
    version, count, device = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    name, size = ctypes.create_string_buffer(NAME_BYTES), ctypes.c_size_t()
    errors = (
        library.cuInit(0)
        or library.cuDriverGetVersion(ctypes.byref(version))
        or library.cuDeviceGetCount(ctypes.byref(count))
        or not count.value
        or library.cuDeviceGet(ctypes.byref(device), 0)
        or library.cuDeviceGetName(name, NAME_BYTES, device)
        or library.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    )
    if errors:
        return None
    major, minor = divmod(version.value, 1_000)
    return GpuKind(name.value.decode(), f"{major}.{minor // 10}", count.value, size.value)
