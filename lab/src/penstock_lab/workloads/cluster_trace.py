"""Task events of a compute cluster, in the shape of the LightSaber sample of Google's trace.

A job has one category, user, priority and request; its tasks are submitted, scheduled, finished,
evicted, failed or killed. A few jobs make most of the events: how many is taken from the sample,
category by category, as are the event types. Every `jobs_every_s` the jobs are replaced by others
of the same sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.seeded import (
    BASE_TIME_MS,
    STAMP,
    Draw,
    Floats,
    Ints,
    cumulative_weights,
    numbers,
    require,
    stamps,
)

TASK_EVENTS = pa.schema(
    [
        ("timestamp", pa.int64()),
        ("job", pa.int64()),
        ("task", pa.int64()),
        ("machine", pa.int64()),
        ("event_type", pa.int32()),
        ("user", pa.int32()),
        ("category", pa.int32()),
        ("priority", pa.int32()),
        ("cpu", pa.float32()),
        ("ram", pa.float32()),
        ("disk", pa.float32()),
        ("constraints", pa.int32()),
        ("at", STAMP),
    ]
)

SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL = range(6)
NO_MACHINE = -1
FIRST_JOB = 6_251_000_000
FIRST_MACHINE = 1_000_000


class Job(NamedTuple):
    """A large job of the sample: its events, tasks and request."""

    events: int
    tasks: int
    cpu: float
    ram: float


class Category(NamedTuple):
    """The sample's part of one category; events outside `large` are spread evenly."""

    jobs: int
    by_type: tuple[int, int, int, int, int, int]
    """Events by event type."""
    by_priority: dict[int, int]
    """Jobs by priority."""
    constrained_jobs: int
    large: tuple[Job, ...]


SAMPLE = (
    Category(
        jobs=78,
        by_type=(4_364, 4_383, 105, 35, 4_198, 228),
        by_priority={0: 17, 1: 21, 2: 29, 8: 2, 9: 9},
        constrained_jobs=10,
        large=(
            Job(3_097, 1_050, 0.025, 0.033),
            Job(3_094, 1_050, 0.025, 0.033),
            Job(2_103, 1_050, 0.025, 0.033),
            Job(1_000, 500, 0.013, 0.016),
            Job(997, 997, 0.025, 0.033),
            Job(594, 198, 0.009, 0.010),
            Job(489, 486, 0.025, 0.080),
            Job(435, 433, 0.025, 0.025),
            Job(207, 65, 0.013, 0.016),
            Job(150, 50, 0.009, 0.004),
            Job(125, 60, 0.063, 0.006),
            Job(90, 45, 0.019, 0.003),
            Job(86, 29, 0.009, 0.005),
            Job(80, 40, 0.009, 0.002),
        ),
    ),
    Category(
        jobs=95,
        by_type=(126, 128, 20, 27, 273, 16),
        by_priority={0: 20, 1: 6, 2: 33, 8: 18, 9: 17, 10: 1},
        constrained_jobs=8,
        large=(
            Job(100, 100, 0.031, 0.009),
            Job(62, 62, 0.063, 0.040),
            Job(59, 10, 0.063, 0.127),
        ),
    ),
    Category(
        jobs=58,
        by_type=(844, 780, 60, 9, 7, 737),
        by_priority={0: 20, 1: 12, 2: 6, 8: 12, 9: 7, 10: 1},
        constrained_jobs=11,
        large=(Job(2_005, 27, 0.016, 0.016), Job(158, 79, 0.041, 0.021)),
    ),
    Category(
        jobs=9,
        by_type=(15, 15, 6, 9, 0, 0),
        by_priority={0: 2, 1: 1, 9: 5, 10: 1},
        constrained_jobs=2,
        large=(),
    ),
)
SAMPLE_JOBS = sum(category.jobs for category in SAMPLE)

# Requests of the other jobs: value and the jobs of the sample that made it.
_CPU = {0.006: 53, 0.063: 47, 0.031: 28, 0.013: 17, 0.025: 9, 0.0: 14, 0.009: 9, 0.125: 8, 0.1: 4}
_RAM = {0.016: 21, 0.003: 20, 0.005: 19, 0.002: 19, 0.012: 16, 0.0: 15, 0.048: 13, 0.033: 9}
_DISK = {0.0: 232, 0.001: 4, 0.002: 3, 0.006: 1}
_USER_JOBS = (27, 25, 21, 13, 9, 8, 7, 6, 6, *[5] * 5, *[4] * 6, 3, *[2] * 13, *[1] * 40)
_SMALL_JOB_TASKS = 3
_KILLED_UNPLACED_SHARE = 702 / 981


@dataclass(frozen=True, kw_only=True)
class ClusterTraceOptions:
    """Numbers of events, jobs and machines."""

    rate: int = 1_000
    """Events per second of event time; the sample has 25."""
    jobs_scale: int = 1
    """Jobs at once, in multiples of the sample's 240."""
    jobs_every_s: int = 647
    """Time after which all jobs are replaced by others, in seconds."""
    machines: int = 12_500
    """Machines of the cluster."""
    base_time_ms: int = BASE_TIME_MS
    """Event time of timestamp 0, in milliseconds since the epoch."""

    def __post_init__(self) -> None:
        require(
            min(self.rate, self.jobs_scale, self.jobs_every_s, self.machines) >= 1,
            f"{self} has no events; every count is 1 or more",
        )


class ClusterTrace:
    """Task events numbered from 0, `rate` of them in every second."""

    schema = TASK_EVENTS

    def __init__(self, options: ClusterTraceOptions | None = None, seed: int = 7) -> None:
        self.options = options if options is not None else ClusterTraceOptions()
        self.seed = seed
        self._slot = Draw(seed, "cluster.slot")
        self._copy = Draw(seed, "cluster.copy")
        self._type = Draw(seed, "cluster.type")
        self._task = Draw(seed, "cluster.task")
        self._machine = Draw(seed, "cluster.machine")
        self._unplaced = Draw(seed, "cluster.unplaced")
        self._slots = _slots()

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Events `first` to `first + count - 1`."""
        options, slots = self.options, self._slots
        n = numbers(first, count)
        seconds = n // options.rate
        timestamp = seconds + 1
        slot = self._slot.weighted(n, slots.cumulative)
        copy = self._copy.below(n, options.jobs_scale)
        generation = seconds // options.jobs_every_s
        job = (generation * options.jobs_scale + copy) * SAMPLE_JOBS + slot
        event_type = self._types(n, slots.category[slot])
        return pa.RecordBatch.from_arrays(
            [
                pa.array(timestamp),
                pa.array(FIRST_JOB + job),
                pa.array(self._task.below(n, slots.tasks[slot])),
                pa.array(self._machines(n, event_type)),
                _ints(event_type),
                _ints(self._user(job)),
                _ints(slots.category[slot]),
                _ints(self._priority(job, slots.category[slot])),
                _floats(self._request("cpu", _CPU, job, slots.cpu[slot])),
                _floats(self._request("ram", _RAM, job, slots.ram[slot])),
                _floats(self._request("disk", _DISK, job, np.full(count, np.nan))),
                _ints(self._constraints(job, slots.category[slot])),
                stamps((options.base_time_ms + timestamp * 1_000) * 1_000),
            ],
            schema=TASK_EVENTS,
        )

    def _types(self, n: Ints, category: Ints) -> Ints:
        drawn = [self._type.weighted(n, cumulative_weights(part.by_type)) for part in SAMPLE]
        types: Ints = np.choose(category, drawn)
        return types

    def _machines(self, n: Ints, event_type: Ints) -> Ints:
        """Where the task runs; a task not yet placed has none."""
        # Ids are far apart in the trace, so that no query can mistake them for places.
        machine = FIRST_MACHINE + self._machine.below(n, self.options.machines) * 331_777
        killed_unplaced = self._unplaced.chance(n, _KILLED_UNPLACED_SHARE) & (event_type == KILL)
        return np.where((event_type == SUBMIT) | killed_unplaced, NO_MACHINE, machine)

    def _user(self, job: Ints) -> Ints:
        rank = Draw(self.seed, "cluster.user").weighted(job, cumulative_weights(_USER_JOBS))
        return 6 + rank * 197 % 506

    def _priority(self, job: Ints, category: Ints) -> Ints:
        draw = Draw(self.seed, "cluster.priority")
        drawn = [_valued(draw, job, part.by_priority) for part in SAMPLE]
        priorities: Ints = np.choose(category, drawn).astype(np.int64)
        return priorities

    def _constraints(self, job: Ints, category: Ints) -> Ints:
        shares = np.array([part.constrained_jobs / part.jobs for part in SAMPLE])
        drawn = Draw(self.seed, "cluster.constraints").unit(job) < shares[category]
        return drawn.astype(np.int64)

    def _request(self, name: str, values: dict[float, int], job: Ints, known: Floats) -> Floats:
        """The job's request: the sample's for its large jobs, drawn for the others."""
        drawn = _valued(Draw(self.seed, f"cluster.{name}"), job, values)
        return np.where(np.isnan(known), drawn, known)


class _Slots(NamedTuple):
    """The jobs of the sample, one row each; a request that is not known is not a number."""

    cumulative: Floats
    category: Ints
    tasks: Ints
    cpu: Floats
    ram: Floats


def _slots() -> _Slots:
    weights: list[float] = []
    category: list[int] = []
    jobs: list[Job] = []
    for number, part in enumerate(SAMPLE):
        small = part.jobs - len(part.large)
        rest = (sum(part.by_type) - sum(job.events for job in part.large)) / small
        unknown = Job(0, _SMALL_JOB_TASKS, float("nan"), float("nan"))
        weights += [*(float(job.events) for job in part.large), *[rest] * small]
        category += [number] * part.jobs
        jobs += [*part.large, *[unknown] * small]
    return _Slots(
        cumulative_weights(weights),
        np.array(category, np.int64),
        np.array([job.tasks for job in jobs], np.int64),
        np.array([job.cpu for job in jobs]),
        np.array([job.ram for job in jobs]),
    )


def _valued(draw: Draw, n: Ints, weight_by_value: dict[float, int] | dict[int, int]) -> Floats:
    values = np.array(list(weight_by_value), np.float64)
    chosen: Floats = values[draw.weighted(n, cumulative_weights(list(weight_by_value.values())))]
    return chosen


def _ints(column: Ints) -> pa.Array:
    return pa.array(column.astype(np.int32))


def _floats(column: Floats) -> pa.Array:
    return pa.array(column.astype(np.float32))
