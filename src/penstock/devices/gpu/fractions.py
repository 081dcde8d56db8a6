"""Floats and doubles on a device, one as the other, to the last bit.

CuPy has every kernel compiled with `-ftz=true`: it takes subnormal floats for zero whenever it
computes with them, and leaves doubles alone. Spark does not. So floats are computed with as
doubles, which are precise enough that a sum, difference or product of two floats that is rounded
twice is the one that is rounded once; subnormal ones are read and written by their bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.devices.gpu.backend import Array

SIGN = np.int32(-(2**31))
EXPONENT, FRACTION = np.int32(0x7F800000), np.int32(0x007FFFFF)
SMALL = 2.0**-126
"""The least float that is not subnormal."""
SMALLEST = 2.0**-149
"""The float of which subnormal ones are multiples."""


def widened(values: Array, xp: Any) -> Array:
    """Floats as doubles; what is no float stays as it is."""
    if values.dtype != np.float32:
        return values
    bits = values.view(np.int32)
    size = (bits & FRACTION).astype(np.float64) * SMALLEST
    small = xp.where(bits < 0, -size, size)
    return xp.where((bits & EXPONENT) == 0, small, values.astype(np.float64))


def narrowed(numbers: Array, xp: Any) -> Array:
    """Doubles as the nearest floats; of two that are as near, the even one."""
    size = xp.abs(numbers)
    is_small = size < SMALL
    units = xp.rint(xp.where(is_small, size, 0.0) / SMALLEST).astype(np.int32)
    small = xp.where(xp.signbit(numbers), units | SIGN, units)
    bits = xp.where(is_small, small, numbers.astype(np.float32).view(np.int32))
    return bits.view(np.float32)
