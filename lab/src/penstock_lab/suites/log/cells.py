"""Cells of the log suite: what is measured of each backend, how much, and how often."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_lab.experiment import jetstream
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM, SIZES, WRITERS, stream_at


class Plan(msgspec.Struct, frozen=True):
    """The plan. The quick one has fewer and shorter runs, and smaller logs to start."""

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
    crowd_substreams: int = 1_000
    crowd_queries: int = 50
    crowd_readers: int = 200
    start_jetstream_share: float = 0.1
    """Of the sizes of the logs to start, in JetStream, which keeps each three times."""

    @property
    def steps(self) -> int:
        over_http = self.repeats + 1 if EMBEDDED in self.backends else 0
        return (self.repeats * 2 + 3) * len(self.backends) + over_http

    def starts_gb(self, backend: str) -> tuple[float, float]:
        """The sizes of the small and the large log."""
        share = self.start_jetstream_share if backend == JETSTREAM else 1.0
        return share * self.start_small_gb, share * self.start_large_gb

    def repeated(self, log: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Words, worker and options of what every repeat measures."""
        delivered = {
            "seconds": self.deliver_s,
            "per_s": self.deliver_per_s,
            "bytes": self.deliver_bytes,
        }
        over_http = [("appends over HTTP", "gateway", {"seconds": self.append_s})]
        return [
            *(over_http if log == EMBEDDED else []),
            ("appends", "appends", {"log": stream_at(log, "appends"), "seconds": self.append_s}),
            ("deliveries", "deliver", {"log": stream_at(log, "delivered"), **delivered}),
        ]

    def once(self, backend: str) -> list[tuple[str, str, dict[str, Any]]]:
        """The same of what is compared within one run, between two logs or two ways to read."""
        small, large = self.starts_gb(backend)
        tags = {
            "entries": self.tag_entries,
            "bytes": self.tag_entry_bytes,
            "few": self.tags_few,
            "many": self.tags_many,
            "reads": self.tag_reads,
        }
        starts = {
            "small": small,
            "large": large,
            "bytes": self.start_entry_bytes,
            "tags": self.start_tags,
            "starts": self.starts,
        }
        recovery = {
            "rate": self.recover_rate,
            "seconds": self.recover_s,
            "commit_ms": self.recover_commit_ms,
            "checkpoint_s": self.recover_checkpoint_s,
            "recoveries": self.recoveries,
        }
        crowd = {
            "seconds": self.deliver_s,
            "substreams": self.crowd_substreams,
            "tags": self.tags_many,
            "queries": self.crowd_queries,
            "readers": self.crowd_readers,
        }
        return [
            *([("answering beside a crowd", "crowd", crowd)] if backend == EMBEDDED else []),
            ("reading by tag", "tags", tags),
            ("starting on a small and a large log", "starts", starts),
            ("recovering with and without checkpoints", "recovery", recovery),
        ]


QUICK = Plan(
    repeats=3, append_s=1.5, deliver_s=5.0, start_small_gb=0.2, start_large_gb=2.0, starts=7
)
FULL = Plan(
    repeats=5, append_s=10.0, deliver_s=30.0, start_small_gb=1.0, start_large_gb=10.0, starts=11
)


def plan_of(*, quick: bool = False, backends: tuple[str, ...] = ()) -> Plan:
    plan = QUICK if quick else FULL
    return msgspec.structs.replace(plan, backends=backends) if backends else plan


def settings(plan: Plan) -> dict[str, Any]:
    built: dict[str, Any] = msgspec.to_builtins(plan)
    servers = jetstream.settings() if JETSTREAM in plan.backends else {}
    return {**built, "sizes": SIZES, "writers": list(WRITERS), "jetstream": servers}
