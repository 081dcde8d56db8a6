"""The order of simulated task sets: decided by the code that is the pool's specification."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.schedule import order as schedule
from penstock.simulate.cores import Order, TaskSet

ORDERS: tuple[schedule.Policy, ...] = schedule.POLICIES


def order_named(name: str) -> Order:
    """The order of that name; a mistake in the name is the caller's."""
    (policy,) = (known for known in ORDERS if known == name)

    def in_order(task_sets: Sequence[TaskSet], now_ms: float) -> Sequence[TaskSet]:
        by_key = {str(task_set.number): task_set for task_set in task_sets}
        views = [_view(task_set) for task_set in task_sets]
        return [by_key[view.key] for view in schedule.in_order(policy, views)]

    return in_order


def _view(task_set: TaskSet) -> schedule.TaskSet:
    """A task set as the pool sees it; kept while it is the same, for that is most of the work."""
    seen = task_set.view
    if not isinstance(seen, schedule.TaskSet) or seen.running != task_set.running:
        due_ms = task_set.deadline_at_ms
        seen = schedule.TaskSet(
            key=str(task_set.number),
            job=task_set.job,
            stage=task_set.stage,
            seen_at_ms=round(task_set.submitted_at_ms),
            running=task_set.running,
            query=str(task_set.query),
            deadline_at_ms=None if due_ms is None else round(due_ms),
            weight=task_set.weight,
        )
        task_set.view = seen
    return seen
