"""Contention for cores: what a batch loses to the batches of other queries, under each order.

An order that puts one batch first makes the others wait, and gives them all cores then. One that
shares lets nobody wait, and gives everyone a part of the cores while others run. Either way a batch
ends later by the core-time that others take out of the cores before it does. The orders are those
of the pool (`schedule/order.py`); `spark` is Spark's own where it runs the oldest job first. Where
Spark shares the cores between pools, a query outside ours asks with `fair`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.admission.load import Load, OtherQuery
from penstock.schedule.order import UNKNOWN_DEADLINE_MS, Owner, weights_of

SHARING = {"fair", "rdas"}
OLDEST_FIRST = {"fifo", "spark"}
OWN = "the batch itself"
"""The key of the batch that is reckoned for; no query has a name with a space."""
WEIGHT_MIN = 0.05


class WantedBatch(msgspec.Struct, frozen=True):
    """A batch that wants cores: the core-time it still needs, the moment it is due on the monotonic
    clock, None without a deadline, and the importance of its query."""

    core_ms: float
    due_at_ms: float | None
    importance: float = 1.0


def waiting_ms(
    own: WantedBatch, load: Load, schedule: str | None, cores: int, now_ms: float
) -> float:
    """The time by which a batch that is cut now ends later than if it had the cores to itself, in
    the order in force; the earliest deadline first, if that was not told."""
    if schedule in SHARING:
        return _shared_ms(own, load, schedule, cores, now_ms)
    return _before_ms(own, load, schedule, cores, now_ms)


def takes_cores(schedule: str | None, other: OtherQuery, due_at_ms: float) -> bool:
    """Whether the open batch of another query takes cores from one that is planned and due then: by
    sharing them, whatever their deadlines, or by an earlier one."""
    if schedule in SHARING:
        return other.is_open
    return other.open_deadline_at_ms is not None and other.open_deadline_at_ms < due_at_ms


def open_batches(load: Load, now_ms: float) -> dict[str, WantedBatch]:
    """The batches of other queries that are cut and not finished, by query."""
    return {
        other.query: WantedBatch(left_ms, other.open_deadline_at_ms, other.importance)
        for other in load.others
        if (left_ms := other.core_ms_left(now_ms)) > 0.0
    }


def parts_of_cores(
    schedule: str | None, batches: Mapping[str, WantedBatch], now_ms: float
) -> dict[str, float]:
    """The part of the cores that each of several batches has while all of them run: by weight under
    `rdas`, the same under `fair`; all of them where an order puts one batch first."""
    if schedule not in SHARING:
        return dict.fromkeys(batches, 1.0)
    if schedule == "fair":
        return dict.fromkeys(batches, 1.0 / len(batches))
    most = max(batch.importance for batch in batches.values())
    weights = weights_of(
        {
            query: Owner(
                round(now_ms + UNKNOWN_DEADLINE_MS if batch.due_at_ms is None else batch.due_at_ms),
                running=0,
                weight=max(WEIGHT_MIN, batch.importance / most),
            )
            for query, batch in batches.items()
        }
    )
    total = sum(weights.values())
    return {query: weight / total for query, weight in weights.items()}


def _before_ms(
    own: WantedBatch, load: Load, schedule: str | None, cores: int, now_ms: float
) -> float:
    """The time until all that comes before a batch has had the cores: every open batch where the
    oldest goes first, else those that are due earlier, and of a later one at most a task that runs
    already; and batches that are planned with an earlier deadline."""
    before_ms = task_ms = 0.0
    own_due_ms = _due_ms(own.due_at_ms)
    for other in load.others:
        left_ms = other.core_ms_left(now_ms)
        if left_ms > 0.0:
            if schedule in OLDEST_FIRST or _due_ms(other.open_deadline_at_ms) <= own_due_ms:
                before_ms += left_ms
            else:
                task_ms = max(task_ms, min(other.open_task_ms, left_ms))
        if other.is_planned(now_ms) and _due_ms(other.planned_deadline_at_ms) < own_due_ms:
            before_ms += other.planned_core_ms
    return before_ms / max(cores, 1) + task_ms


def _shared_ms(
    own: WantedBatch, load: Load, schedule: str | None, cores: int, now_ms: float
) -> float:
    """The time that others take out of shared cores until a batch has had its own: each as much as
    its part against the own one, and no more than it needs. So beside one with the same part a
    short batch takes twice as long, and a long one is delayed by all of the other. Before that,
    tasks that run already end, and cores come free one by one."""
    batches = {OWN: own, **open_batches(load, now_ms)}
    for other in load.others:
        if _is_planned_beside(other, own, now_ms):
            opened = batches.get(other.query)
            batches[other.query] = WantedBatch(
                other.planned_core_ms + (0.0 if opened is None else opened.core_ms),
                other.planned_deadline_at_ms if opened is None else opened.due_at_ms,
                other.importance,
            )
    parts = parts_of_cores(schedule, batches, now_ms)
    beside_ms = sum(
        min(batch.core_ms, own.core_ms * parts[query] / parts[OWN])
        for query, batch in batches.items()
        if query != OWN
    )
    tasks_ms = (min(other.open_task_ms, other.core_ms_left(now_ms)) for other in load.others)
    return (beside_ms + max(tasks_ms, default=0.0)) / max(cores, 1)


def _is_planned_beside(other: OtherQuery, own: WantedBatch, now_ms: float) -> bool:
    """Whether another query waits for a moment before a batch is due: its own may begin before."""
    planned_at_ms = other.planned_at_ms
    return (
        planned_at_ms is not None
        and other.is_planned(now_ms)
        and planned_at_ms < _due_ms(own.due_at_ms)
    )


def _due_ms(at_ms: float | None) -> float:
    return float("inf") if at_ms is None else at_ms
