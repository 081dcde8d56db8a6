"""The checkpoint store of the paper: as slow as it says, for a checkpoint here.

The paper's checkpoints took 2.5 s in the tail, on its network and file system, and it does not say
what of that is an operation and what a byte. So a query is run on a store whose delays are known,
and the store it is measured on has both of them longer by what its checkpoints lack to that time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.testing.delayed_store import delayed_store
from penstock_lab.percentiles import percentile
from penstock_lab.suites.paper.papers import CHECKPOINT_MS

SCHEME = "paper"
MEASURED_ON = "remote20"
MS_PER_OPERATION = 20
MS_PER_MB = 10.0
"""Of the store that checkpoints are measured on."""


class Calibration(msgspec.Struct, frozen=True):
    """Measurements of the checkpoints of a query, and the store that follows from them."""

    commit_ms: float
    """A partition's, 99 of 100, on the store they were measured on."""
    partition_bytes: float
    """What a partition's checkpoint brings to the store, 99 of 100."""
    slowdown: float
    """Of the store that follows, over that one."""

    @property
    def ms_per_operation(self) -> int:
        return round(MS_PER_OPERATION * self.slowdown)

    @property
    def ms_per_mb(self) -> float:
        return round(MS_PER_MB * self.slowdown, 1)

    @property
    def conf(self) -> dict[str, str]:
        """Spark settings that make it a store that a session knows."""
        return delayed_store(
            SCHEME, ms_per_operation=self.ms_per_operation, ms_per_mb=self.ms_per_mb
        )

    @property
    def words(self) -> str:
        return (
            f"a checkpoint of {self.partition_bytes / 1000:,.0f} kB took {self.commit_ms:,.0f} ms "
            f"on {MEASURED_ON}; at {self.ms_per_operation} ms per operation and "
            f"{self.ms_per_mb:g} ms per MB it takes about {CHECKPOINT_MS:,.0f}"
        )


def calibrated(
    commits_ms: Sequence[float], snapshot_bytes: Sequence[int], partitions: int
) -> Calibration | None:
    """From the state commits of batches, each summed over its tasks, and the bytes that each
    version of the state brought, summed likewise. None without any. A store is never made faster
    than the one that was measured."""
    commit_ms, size = percentile(commits_ms, 99), percentile(snapshot_bytes, 99)
    if not commit_ms or not size:
        return None
    commit_ms, size = commit_ms / partitions, size / partitions
    # What of it is not the store's is slowed down too: a checkpoint takes rather less than there.
    return Calibration(commit_ms, size, max(1.0, CHECKPOINT_MS / commit_ms))
