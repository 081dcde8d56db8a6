"""Load of an application: the other queries that want the same cores."""

from __future__ import annotations

import msgspec


class OtherQuery(msgspec.Struct, frozen=True):
    """Another query of the application, as far as a decision reckons with it.

    `core_ms_left` and `deadline_at_ms` are of batches that are cut and not finished (None: no
    deadline, or no such batch); `planned_…` of the batch it waits to cut. `usual_ms` is what a
    batch of it usually takes, `core_share` the cores that it keeps busy on average. `is_late`: its
    last batch missed the deadline, or its open one has.
    """

    query: str
    importance: float = 1.0
    deadline_ms: float | None = None
    usual_ms: float = 0.0
    core_share: float = 0.0
    core_ms_left: float = 0.0
    longest_task_ms: float = 0.0
    deadline_at_ms: float | None = None
    planned_at_ms: float | None = None
    planned_core_ms: float = 0.0
    planned_deadline_at_ms: float | None = None
    is_late: bool = False


class Load(msgspec.Struct, frozen=True):
    """The other queries of one application at one moment."""

    others: tuple[OtherQuery, ...] = ()

    @property
    def tightest(self) -> OtherQuery | None:
        """The other query with the shortest deadline; None if no other one has any."""
        with_deadline = [other for other in self.others if other.deadline_ms is not None]
        return min(with_deadline, key=lambda other: other.deadline_ms or 0.0, default=None)


NO_LOAD = Load()
