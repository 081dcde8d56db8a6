"""The life of a simulated query: it asks, cuts, plans, runs its stages, releases, and asks again.

As on Spark with our commit behind it: the next question follows the last task at once, while the
batch becomes durable; but a batch's tasks wait until the batch before the last is visible.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import count
from typing import Protocol

from penstock.admission.decision import Cut, Wait, data_wakes_from_ms
from penstock.simulate.admitting import Admits
from penstock.simulate.cores import Cores, TaskSet
from penstock.simulate.events import Events
from penstock.simulate.outcome import BatchRecord
from penstock.simulate.traffic import Arrivals
from penstock.simulate.world import QueryModel, Stage

TICK_MS = 1.0


class Ground(Protocol):
    """The parts of a world that its queries share."""

    events: Events
    cores: Cores
    admission: Admits
    handover_ms: float
    spread: float
    submissions: count[int]
    jobs: count[int]


class StreamQuery:
    """One query: at most one batch computes while the one before it is released."""

    def __init__(
        self,
        number: int,
        model: QueryModel,
        arrivals: Arrivals,
        ground: Ground,
        luck: random.Random,
    ) -> None:
        self.number = number
        self.model = model
        self.arrivals = arrivals
        self.batches: list[BatchRecord] = []
        self.longest_hold_ms = 0.0
        self._ground = ground
        self._luck = luck
        self._asked = 0
        self._is_computing = False
        self._owes_empty = False
        self._free_at_ms = 0.0
        """When the last batch had computed, so that rows could have been cut."""
        self._released_at_ms = 0.0
        self._second_last_at_ms = 0.0
        """When the last batch that computed, and the one before it, are visible."""
        self._ground.admission.open(number, model)

    def ask(self, *, is_first: bool) -> None:
        """Ask for a batch; held until the answer's time, new rows, or another query's batch."""
        self._asked += 1
        events, arrivals = self._ground.events, self.arrivals
        now_ms = events.now_ms
        oldest_at_ms = arrivals.oldest_at_ms(now_ms)
        age_ms = None
        if oldest_at_ms is not None:
            age_ms = now_ms - oldest_at_ms
            held_ms = now_ms - max(oldest_at_ms, self._free_at_ms)
            self.longest_hold_ms = max(self.longest_hold_ms, held_ms)
        answer = self._ground.admission.ask(
            self.number, arrivals.waiting_rows(now_ms), age_ms, is_first=is_first, now_ms=now_ms
        )
        if isinstance(answer, Cut):
            self._cut(answer, now_ms - (age_ms or 0.0))
        elif is_first and self._owes_empty:
            self._cut_empty()
        elif age_ms is None:
            self._ask_again(arrivals.next_at_ms(now_ms))
        else:
            self._hold(answer)

    def look_again(self) -> None:
        """Decide anew, because another query did something that the held question rests on."""
        if not self._is_computing:
            self.ask(is_first=False)

    def _hold(self, wait: Wait) -> None:
        """Hold the question until its time; new rows wake it, though not each append."""
        now_ms = self._ground.events.now_ms
        until_ms = wait.until_ms
        next_at_ms = self.arrivals.next_at_ms(now_ms)
        if next_at_ms is not None:
            until_ms = min(until_ms, max(next_at_ms, data_wakes_from_ms(wait, now_ms)))
        # A wait that ends now must not stop the simulated clock.
        self._ask_again(max(until_ms, now_ms + TICK_MS))

    def _ask_again(self, at_ms: float | None) -> None:
        if at_ms is not None:
            self._ground.events.at(at_ms, partial(self._ask_if_held, self._asked))

    def _ask_if_held(self, asked: int) -> None:
        if asked == self._asked:
            self.ask(is_first=False)

    def _cut(self, answer: Cut, oldest_at_ms: float) -> None:
        now_ms = self._ground.events.now_ms
        rows_max = answer.rows_max
        if answer.bytes_max is not None:
            by_bytes = answer.bytes_max // self.model.row_bytes
            rows_max = by_bytes if rows_max is None else min(rows_max, by_bytes)
        first, end = self.arrivals.take(rows_max, now_ms)
        rows = self.arrivals.rows_between(first, end)
        self._owes_empty = self.model.cost.owes_empty
        self._plan(
            BatchRecord(
                query=self.number,
                cut=len(self.batches),
                cut_at_ms=now_ms,
                rows=rows,
                first=first,
                end=end,
                oldest_at_ms=oldest_at_ms,
                has_data=True,
                predicted_ms=answer.predicted_ms,
                left_ms=answer.left_ms,
                reason=answer.reason,
            ),
            answer.weight,
        )

    def _cut_empty(self) -> None:
        """The batch without data that Spark owes after a watermark has moved."""
        self._owes_empty = False
        now_ms = self._ground.events.now_ms
        read = self.arrivals.read
        record = BatchRecord(
            query=self.number,
            cut=len(self.batches),
            cut_at_ms=now_ms,
            rows=0,
            first=read,
            end=read,
            oldest_at_ms=now_ms,
            has_data=False,
            predicted_ms=None,
            left_ms=None,
            reason="a batch without data, because a watermark has moved",
        )
        self._plan(record, 1.0)

    def _plan(self, batch: BatchRecord, weight: float) -> None:
        self.batches.append(batch)
        self._is_computing = True
        self._ground.admission.cut_made(batch)
        batch.planning_ms = self.model.cost.planning_ms * self._spread()
        # Batch i+1 may compute while i is released, but not while i-1 still is.
        start_ms = max(self._ground.events.now_ms + batch.planning_ms, self._second_last_at_ms)
        job = next(self._ground.jobs)
        self._ground.events.at(start_ms, partial(self._submit, batch, weight, job, 0))

    def _submit(self, batch: BatchRecord, weight: float, job: int, stage: int) -> None:
        deadline_ms = self.model.terms.deadline_ms
        task_set = TaskSet(
            number=next(self._ground.submissions),
            job=job,
            stage=stage,
            query=self.number,
            deadline_at_ms=None if deadline_ms is None else batch.oldest_at_ms + deadline_ms,
            arrived_at_ms=batch.oldest_at_ms,
            weight=weight,
            durations_ms=self._durations_ms(self.model.cost.stages[stage], batch.rows),
            when_done=lambda: self._stage_done(batch, weight, job, stage, task_set),
        )
        batch.tasks += len(task_set.durations_ms)
        self._ground.cores.submit(task_set)

    def _durations_ms(self, stage: Stage, rows: int) -> list[float]:
        task_ms = stage.fixed_ms + rows / stage.tasks * stage.row_us / 1000
        return [task_ms * self._spread() for _ in range(stage.tasks)]

    def _spread(self) -> float:
        """A factor around 1, by luck."""
        return self._luck.lognormvariate(0.0, self._ground.spread) if self._ground.spread else 1.0

    def _stage_done(
        self, batch: BatchRecord, weight: float, job: int, stage: int, task_set: TaskSet
    ) -> None:
        batch.core_ms += task_set.core_ms
        batch.longest_task_ms = max(batch.longest_task_ms, task_set.longest_task_ms)
        batch.queued_ms += (task_set.started_at_ms or 0.0) - task_set.submitted_at_ms
        events = self._ground.events
        if stage + 1 < len(self.model.cost.stages):
            following = partial(self._submit, batch, weight, job, stage + 1)
            events.after(self._ground.handover_ms, following)
            return
        batch.computed_at_ms = self._free_at_ms = events.now_ms
        self._is_computing = False
        release_ms = self.model.cost.release_ms * self._spread()
        # Releases of a query follow each other.
        self._second_last_at_ms = self._released_at_ms
        self._released_at_ms = max(events.now_ms, self._released_at_ms) + release_ms
        events.at(self._released_at_ms, partial(self._show, batch))
        self.ask(is_first=True)

    def _show(self, batch: BatchRecord) -> None:
        batch.visible_at_ms = self._ground.events.now_ms
        self._ground.admission.batch_done(batch)
