"""The device as operations see it: an array module like NumPy, transfers, times, and kernels.

Everything but this is written once against it, so that what runs on a GPU is tried with NumPy where
there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from penstock.devices.operators.rows import Numbers

Array: TypeAlias = Any
"""An array on the device: what `xp` makes."""
Mark: TypeAlias = Any
"""A point in the order of what the device was asked to do."""


class Backend(Protocol):
    """A device. Calls return when the work is asked for; `download` waits for it."""

    xp: Any
    """The array module: CuPy, or NumPy in tests."""
    tables: dict[bytes, Any]
    """Static tables that stay on the device from batch to batch, by their bytes."""

    def upload(self, arrays: Sequence[Numbers]) -> list[Array]:
        """Copies of flat arrays on the device, in one transfer."""
        ...

    def download(self, arrays: Sequence[Array]) -> list[Numbers]:
        """Copies of arrays on the host, in one transfer; all that was asked for is done then."""
        ...

    def mark(self) -> Mark:
        """The point that work has come to when all that was asked for until now is done."""
        ...

    def elapsed_us(self, start: Mark, end: Mark) -> int:
        """The time between two points, both of them reached."""
        ...

    def stable_order(self, keys: Array) -> Array:
        """The places of numbers in ascending order; equal ones stay in theirs."""
        ...

    def leaders(self, words: Array) -> Array:
        """For each row the number of the first row with the same words; `words` has a line of
        64-bit numbers for each part of a key."""
        ...

    def sums(self, values: Array, ids: Array, count: int) -> Array:
        """The sum of the 64-bit numbers of each group, wrapping."""
        ...

    def ordered_sums(self, values: Array, ids: Array, count: int) -> Array:
        """The sum of the doubles of each group, the same for the same rows every time."""
        ...

    def extremes(self, values: Array, ids: Array, count: int, *, is_max: bool) -> Array:
        """The largest or smallest 64-bit number of each group; every group has one."""
        ...

    def free(self) -> None:
        """Give back memory that nothing uses, static tables with it."""
        ...
