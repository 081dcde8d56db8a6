"""Causes why a GPU cannot be had, from the errors that CuPy and CUDA raise."""

from __future__ import annotations

from penstock.devices.pipeline import DeviceRefused
from penstock.model.device_plans import FallbackCause

INSTALL = "install CuPy for its CUDA: pip install 'penstock[gpu]' for 13, 'penstock[gpu12]' for 12"
STATUS_CAUSES: dict[int, FallbackCause] = {
    2: "full",  # cudaErrorMemoryAllocation
    34: "absent",  # cudaErrorStubLibrary
    35: "driver",  # cudaErrorInsufficientDriver
    46: "busy",  # cudaErrorDevicesUnavailable: a device that takes one process has it
    100: "absent",  # cudaErrorNoDevice
    101: "absent",  # cudaErrorInvalidDevice
    803: "driver",  # cudaErrorSystemDriverMismatch
    804: "driver",  # cudaErrorCompatNotSupportedOnDevice
}
CUDA_MODULES = ("cupy", "cupyx", "cupy_backends")
NOT_LOADED = ("CuPy failed to load", "Failed to find CUDA headers")
"""How CuPy says that a library of CUDA is missing, or what its compiler reads; the error has no
type of its own."""


def cause_of(error: BaseException) -> FallbackCause | None:
    """The cause behind an error; None if it has nothing to do with the device."""
    if isinstance(error, MemoryError):
        return "full"
    if isinstance(error, ImportError) or any(words in str(error) for words in NOT_LOADED):
        return "absent"
    if type(error).__module__.partition(".")[0] not in CUDA_MODULES:
        return None
    return STATUS_CAUSES.get(getattr(error, "status", 0), "gone")


def refusal_of(error: BaseException) -> DeviceRefused | None:
    """The refusal that an error of the device amounts to; None if it is of something else."""
    cause = cause_of(error)
    if cause is None:
        return None
    remedy = f"; {INSTALL}" if isinstance(error, ImportError) else ""
    return DeviceRefused(cause, f"{type(error).__name__}: {error}{remedy}")
