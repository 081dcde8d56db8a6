"""Load of an application: the other queries that want the same cores."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

LEFT_SHARE_MIN = 0.1
"""The share of its predicted core-time that an open batch counts with until it is known to end."""

PLAN_KEPT_MS = 1_000.0


class OtherQuery(msgspec.Struct, frozen=True):
    """A query of the application as the others reckon with it; it changes with the query's book.

    `open_…` is of the batch that is cut and not finished: its core-time, cut, prediction and
    deadline, on the monotonic clock; `zstream_ms` is the papers' prediction for it. `planned_…` is
    of the batch that the query waits to cut. `usual_ms` is the usual time of its batches,
    `core_share` the cores that it keeps busy on average. `is_late`: its last batch was.
    """

    query: str
    importance: float = 1.0
    deadline_ms: float | None = None
    usual_ms: float = 0.0
    core_share: float = 0.0
    is_late: bool = False
    open_core_ms: float = 0.0
    open_at_ms: float = 0.0
    open_predicted_ms: float = 0.0
    open_until_ms: float = 0.0
    open_deadline_at_ms: float | None = None
    open_task_ms: float = 0.0
    zstream_ms: float = 0.0
    is_open: bool = False
    planned_at_ms: float | None = None
    planned_core_ms: float = 0.0
    planned_deadline_at_ms: float | None = None

    def core_ms_left(self, now_ms: float) -> float:
        """Core-time that its open batch still needs; 0 without one, or once that has expired."""
        if not self.is_open or now_ms >= self.open_until_ms:
            return 0.0
        done = (now_ms - self.open_at_ms) / max(self.open_predicted_ms, 1.0)
        return self.open_core_ms * max(1.0 - done, LEFT_SHARE_MIN)

    def is_planned(self, now_ms: float) -> bool:
        """Whether the query waits to cut a batch; one whose moment is over has stopped asking."""
        return self.planned_at_ms is not None and self.planned_at_ms >= now_ms - PLAN_KEPT_MS


class Load(msgspec.Struct, frozen=True):
    """The other queries of one application at one moment."""

    others: tuple[OtherQuery, ...] = ()

    def bearable_task_ms(self) -> float | None:
        """The longest task that no other query's deadline is broken by: a quarter of what its
        deadline leaves beside its usual batch, since a batch may meet a foreign task at each of its
        stages; a tenth of the deadline at least; None without any."""
        bearable = [
            max((other.deadline_ms - other.usual_ms) / 4, other.deadline_ms / 10)
            for other in self.others
            if other.deadline_ms is not None
        ]
        return min(bearable, default=None)

    def core_share(self) -> float:
        """The cores that the other queries keep busy on average."""
        return sum(other.core_share for other in self.others)

    def cores_left(self, cores: float) -> float:
        """The cores out of `cores` that the other queries leave to one, an equal part of them at
        least."""
        return max(cores - self.core_share(), cores / (1 + len(self.others)))


NO_LOAD = Load()


def load_beside(query: str, queries: Iterable[OtherQuery]) -> Load:
    """The load that `query` sees: every other query of its application."""
    return Load(tuple(other for other in queries if other.query != query))
