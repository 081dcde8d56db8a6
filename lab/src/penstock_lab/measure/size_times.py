"""Times of an operation over an input of one size, as a record of them is kept."""

from __future__ import annotations

import msgspec


class SizeTimes(msgspec.Struct, frozen=True):
    """Medians in milliseconds over an input of `bytes`; what it takes to move rows is apart."""

    bytes: int
    rows: int
    cpu_ms: float
    gpu_ms: float
    to_gpu_ms: float
    to_cpu_ms: float

    @property
    def transfer_ms(self) -> float:
        return self.to_gpu_ms + self.to_cpu_ms
