"""`all-cpu`, `all-gpu`: every operation on one device."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.devices.mapping import OperationDevice
from penstock.model.device_plans import Device, OperationKind


def map_devices(
    kinds: Sequence[OperationKind], device: Device, reason: str
) -> tuple[OperationDevice, ...]:
    """All operations on one device."""
    return tuple(OperationDevice(device, reason) for _ in kinds)
