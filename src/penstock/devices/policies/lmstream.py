"""`lmstream`: LMStream's Algorithm 2 with Eq. 7 to 9, as printed.

Base cost multiplies both sides of the comparison and cancels, but for the transition cost that is
added to one of them. So with a share x of the inflection point, an operation after one on the CPU,
and the first and the last, goes to the CPU below x = sqrt(base / (base - 0.1)), and another one
below sqrt(base / (base + 0.1)): with the base costs of Table II all switch between 0.94 and 1.07
of the inflection point, whatever they do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.devices.mapping import OperationDevice
from penstock.devices.policies.table import BASE_COST
from penstock.model.device_plans import OperationKind

BASE_TRANSITION = 0.1


def map_devices(
    kinds: Sequence[OperationKind], partition_bytes: float, inflection_bytes: float
) -> tuple[OperationDevice, ...]:
    """The devices of a chain of operations over partitions of this size. They come in the order of
    the chain: each looks at the device of the one before it."""
    share = partition_bytes / inflection_bytes
    mapped: list[OperationDevice] = []
    for index, kind in enumerate(kinds):
        cpu = BASE_COST[kind] * share  # Eq. 7
        gpu = BASE_COST[kind] / share if share else math.inf  # Eq. 8
        transition = BASE_TRANSITION * share  # Eq. 9
        is_at_an_end = index in (0, len(kinds) - 1)
        if is_at_an_end or mapped[-1].device == "cpu":
            gpu += transition
        else:
            cpu += transition
        reason = (
            f"cpu {cpu:.2f}, gpu {gpu:.2f} in units of the paper, at {share:.2f} of the inflection "
            f"point"
        )
        mapped.append(OperationDevice("cpu" if gpu > cpu else "gpu", reason))
    return tuple(mapped)
