"""The device of an operation with its reason: what every policy gives out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.device_plans import Device, MachineBody


class OperationDevice(NamedTuple):
    """The device that an operation runs on, and why there."""

    device: Device
    reason: str


def gpu_absence(machines: Sequence[MachineBody]) -> str | None:
    """The reason why no operation can be planned for a GPU; None if all machines have one.

    One device is planned for all tasks of a batch, and Spark says nothing of which machine a task
    will run on, so a single machine without a GPU rules it out.
    """
    without = sum(machine.count for machine in machines if not machine.gpus)
    every = sum(machine.count for machine in machines)
    if not without and machines:
        return None
    if without == every:
        return "no machine has a GPU"
    return f"{without} of {every} machines have no GPU"
