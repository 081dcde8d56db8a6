"""How much the suite does, as a value that is written into the result file."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment import jetstream

EMBEDDED, JETSTREAM = "embedded", "jetstream"
SIZES = {"100B": 100, "16KiB": 16 << 10, "128KiB": 128 << 10}
WRITERS = (1, 16)
GB = 1_000_000_000


def stream_at(log: str, name: str) -> str:
    """The log of that name, at servers of JetStream; the embedded log is told by its folder."""
    return f"{log}/{name}" if "://" in log else log


class Plan(msgspec.Struct, frozen=True):
    """The quick one has fewer and shorter runs, and smaller logs to start."""

    repeats: int
    append_s: float
    """Of each size and number of writers, after a warm-up of a fifth of it."""
    deliver_s: float
    start_small_gb: float
    start_large_gb: float
    starts: int
    backends: tuple[str, ...] = (EMBEDDED, JETSTREAM)
    deliver_bytes: int = 16 << 10
    deliver_per_s: int = 100
    tags_few: int = 10
    tags_many: int = 10_000
    tag_entries: int = 20_000
    tag_entry_bytes: int = 16 << 10
    tag_reads: int = 9
    start_entry_bytes: int = 64 << 10
    start_tags: int = 20_000
    recover_s: int = 300
    """Of changes, at `recover_rate` events per second."""
    recover_rate: int = 80_000
    recover_commit_ms: int = 100
    recover_checkpoint_s: int = 10
    recoveries: int = 3
    start_jetstream_share: float = 0.1
    """Of the sizes of the logs to start, in JetStream, which keeps each three times."""

    @property
    def steps(self) -> int:
        return (self.repeats * 2 + 3) * len(self.backends)

    def starts_gb(self, backend: str) -> tuple[float, float]:
        """How large the small and the large log are."""
        share = self.start_jetstream_share if backend == JETSTREAM else 1.0
        return share * self.start_small_gb, share * self.start_large_gb

    def settings(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        servers = jetstream.settings() if JETSTREAM in self.backends else {}
        return {**built, "sizes": SIZES, "writers": list(WRITERS), "jetstream": servers}


QUICK = Plan(
    repeats=3, append_s=1.5, deliver_s=5.0, start_small_gb=0.2, start_large_gb=2.0, starts=7
)
FULL = Plan(
    repeats=5, append_s=10.0, deliver_s=30.0, start_small_gb=1.0, start_large_gb=10.0, starts=11
)
