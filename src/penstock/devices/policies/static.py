"""`static`: every operation on the device that Table II says it prefers, whatever the size."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.devices.mapping import OperationDevice
from penstock.devices.policies.table import PREFERENCE
from penstock.model.device_plans import Device, OperationKind


def map_devices(kinds: Sequence[OperationKind]) -> tuple[OperationDevice, ...]:
    """The preferred devices; a neutral operation stays where the one before it is."""
    mapped: list[OperationDevice] = []
    device: Device = "cpu"
    for kind in kinds:
        preferred = PREFERENCE[kind]
        if preferred is None:
            reason = f"{kind} is neutral and stays where its input is"
        else:
            device, reason = preferred, f"{kind} prefers the {preferred} by Table II"
        mapped.append(OperationDevice(device, reason))
    return tuple(mapped)
