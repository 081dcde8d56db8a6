"""The order in which task sets of queries with deadlines are offered free cores.

Spark hands a free core to the first task set of the order that has a task waiting. So the order
alone decides who runs next: `edf` by the deadline; `rdas` by shares of the cores, larger for those
with less time left; `fifo` and `fair` as Spark does it, for comparison, `fair` between queries.
No clock is read: deadlines are points in time, and shares depend on their differences only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import msgspec

Policy = Literal["edf", "rdas", "fifo", "fair"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

UNKNOWN_DEADLINE_MS = 10_000
"""How long after it was first seen a task set is due that has no deadline, so that it is not put
off for ever by those that have one."""

WEIGHT_MIN = 1.0 / 3.0
"""The weight of the query with the most time left, where the one with the least has 1. Of three
queries with evenly spaced deadlines and six cores they get one, two and three."""


class TaskSet(msgspec.Struct, frozen=True):
    """One stage of one job of a query, as far as its order depends on it.

    `job` and `stage` are Spark's numbers, `running` is how many of its tasks have a core. `weight`
    multiplies the share under `rdas`, in (0, 1]. A task set without a query is a query of its own.
    """

    key: str
    job: int
    stage: int
    seen_at_ms: int
    running: int = 0
    query: str | None = None
    deadline_at_ms: int | None = None
    weight: float = 1.0

    @property
    def due_at_ms(self) -> int:
        if self.deadline_at_ms is not None:
            return self.deadline_at_ms
        return self.seen_at_ms + UNKNOWN_DEADLINE_MS

    @property
    def owner(self) -> str:
        """Whom its cores count for; no query has a name with a space."""
        return self.query if self.query is not None else f"job {self.job}"


class Owner(msgspec.Struct, frozen=True):
    """A query with all its task sets together: its earliest deadline, and its cores."""

    due_at_ms: int
    running: int
    weight: float


def in_order(policy: Policy, task_sets: Sequence[TaskSet]) -> list[TaskSet]:
    """The task sets, first the one that is offered a free core first."""
    return sorted(task_sets, key=_rank(policy, task_sets))


def _rank(policy: Policy, task_sets: Sequence[TaskSet]) -> Callable[[TaskSet], tuple[float, ...]]:
    """What task sets are compared by; the oldest job and its first stage come first in all."""
    match policy:
        case "fifo":
            return lambda each: (each.job, each.stage)
        case "edf":
            return lambda each: (each.due_at_ms, each.job, each.stage)
        case "fair":
            fair = owners(task_sets)
            return lambda each: (fair[each.owner].running, each.job, each.stage)
        case "rdas":
            shared = owners(task_sets)
            weights = weights_of(shared)
            return lambda each: (
                shared[each.owner].running / weights[each.owner],
                shared[each.owner].due_at_ms,
                each.job,
                each.stage,
            )


def owners(task_sets: Sequence[TaskSet]) -> dict[str, Owner]:
    """Every query that has a task set here, by name."""
    summed: dict[str, Owner] = {}
    for each in task_sets:
        known = summed.get(each.owner)
        if known is None:
            summed[each.owner] = Owner(each.due_at_ms, each.running, each.weight)
        else:
            summed[each.owner] = Owner(
                min(known.due_at_ms, each.due_at_ms),
                known.running + each.running,
                min(known.weight, each.weight),
            )
    return summed


def weights_of(queries: dict[str, Owner]) -> dict[str, float]:
    """The share of each query under `rdas`: remaining times, arrival + deadline - now, between the
    least and the most, from 1 down to WEIGHT_MIN, times its own weight.

    `now` is the same for all and drops out of the differences. One query alone, or all due at the
    same time, have weight 1: without a least weight one would get nothing, and the shares of equal
    ones would be 0 / 0.
    """
    due = [each.due_at_ms for each in queries.values()]
    least, most = min(due, default=0), max(due, default=0)
    span = most - least
    weights = {}
    for name, each in queries.items():
        urgency = (most - each.due_at_ms) / span if span else 1.0
        weights[name] = (WEIGHT_MIN + (1.0 - WEIGHT_MIN) * urgency) * each.weight
    return weights
