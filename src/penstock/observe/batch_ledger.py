"""Ledger of a micro-batch: where its time went, made of what Spark has reported of it.

On the stream's thread one thing follows the other, so `wall_ms` adds up to Spark's
`triggerExecution`. Tasks run beside each other: `task_ms` is summed over them, and splits what
`wall_ms["tasks"]` covers. `counters` are those of the whole JVM between the ends of two batches, so
with several queries at work they are of all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

NS_IN_MS = 1e6
WHOLE = "triggerExecution"
JOB_PHASE = "addBatch"
PHASES = {
    "latestOffset": "admission",
    "walCommit": "offsets",
    "getBatch": "get batch",
    "queryPlanning": "planning",
    "commitOffsets": "commit",
}
"""Phases in Spark's progress, and their names in a ledger; further ones keep Spark's."""
BEFORE_JOB = ("latestOffset", "walCommit", "getBatch", "queryPlanning")
FETCH = "waiting for pages of the log (ns)"
SCANS = ("eviction scans", "eviction scans skipped")
"""Metrics of the plug-in: scans of state that operators have made, and those they were spared."""
STATE_LOAD = "rocksdbLoadLatency"
Span = tuple[float, float]


class StateOperator(msgspec.Struct, frozen=True, rename="camel"):
    """One stateful operator in Spark's progress."""

    all_updates_time_ms: float = 0
    all_removals_time_ms: float = 0
    commit_time_ms: float = 0
    custom_metrics: dict[str, float] = {}


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """Progress of a batch as Spark reports it, as far as a ledger needs it."""

    batch_id: int
    timestamp: datetime
    """When its trigger began."""
    duration_ms: dict[str, float]
    num_input_rows: int = 0
    state_operators: tuple[StateOperator, ...] = ()


class Job(msgspec.Struct, frozen=True):
    """A job of the batch, from its start to its end."""

    started_ms: float
    ended_ms: float


class Stage(msgspec.Struct, frozen=True):
    """A stage of the batch, from its submission to its end."""

    id: int
    submitted_ms: float
    completed_ms: float


class Task(msgspec.Struct, frozen=True):
    """A task attempt: when it ran, and what Spark measured of it."""

    stage: int
    launched_ms: float
    finished_ms: float
    deserialise_ms: float = 0
    run_ms: float = 0
    result_ms: float = 0
    shuffle_write_ns: float = 0
    shuffle_wait_ms: float = 0
    metrics: dict[str, float] = {}


class BatchRecord(msgspec.Struct, frozen=True):
    """All that the plug-in remembers of one batch."""

    progress: Progress
    jobs: tuple[Job, ...] = ()
    stages: tuple[Stage, ...] = ()
    tasks: tuple[Task, ...] = ()
    counters: dict[str, float] = {}


class BatchSteps(msgspec.Struct, frozen=True):
    """The ledger of one batch."""

    batch: int
    rows: int
    trigger_ms: float
    wall_ms: dict[str, float]
    """By step, in their order; adds up to `trigger_ms`. `other`: what no step explains."""
    task_ms: dict[str, float]
    """By step within tasks, summed over them. `state updates` are as Spark measures them, with the
    rows that were read for them and the `shuffle wait`; `rows`: what is left of the tasks' time."""
    counters: dict[str, float]

    @property
    def explained(self) -> float:
        """The share of the batch that its steps explain."""
        if not self.trigger_ms:
            return 1.0
        return 1 - self.wall_ms["other"] / self.trigger_ms


def ledgers(records_json: str | bytes) -> list[BatchSteps]:
    """The ledgers of the batches in the plug-in's JSON, in its order."""
    return [ledger(record) for record in msgspec.json.decode(records_json, type=list[BatchRecord])]


def ledger(record: BatchRecord) -> BatchSteps:
    progress = record.progress
    trigger_ms = progress.duration_ms.get(WHOLE, 0.0)
    counters: dict[str, float] = {
        "tasks": len(record.tasks),
        "compilations": record.counters.get("compilations", 0),
        "compile ms": record.counters.get("compile ns", 0) / NS_IN_MS,
        "gc ms": record.counters.get("gc ms", 0),
        "requests": record.counters.get("requests", 0),
        "request ms": record.counters.get("request ns", 0) / NS_IN_MS,
        "broadcast bytes": record.counters.get("broadcast bytes", 0),
        **{name: sum(task.metrics.get(name, 0.0) for task in record.tasks) for name in SCANS},
    }
    return BatchSteps(
        progress.batch_id,
        progress.num_input_rows,
        trigger_ms,
        _wall_ms(record, trigger_ms),
        _task_ms(record),
        counters,
    )


def _wall_ms(record: BatchRecord, trigger_ms: float) -> dict[str, float]:
    durations = record.progress.duration_ms
    wall = {PHASES[phase]: durations.get(phase, 0.0) for phase in BEFORE_JOB}
    wall |= _job_ms(record, durations.get(JOB_PHASE, 0.0))
    for phase, took_ms in durations.items():
        if phase not in (WHOLE, JOB_PHASE, *BEFORE_JOB):
            wall[PHASES.get(phase, phase)] = took_ms
    # Spark rounds every phase to a millisecond, so their sum may pass the whole by a few.
    wall["other"] = max(0.0, trigger_ms - sum(wall.values()))
    return wall


def _job_ms(record: BatchRecord, phase_ms: float) -> dict[str, float]:
    """The phase in which Spark runs the batch's jobs, by what they waited for."""
    jobs = [job for job in record.jobs if job.ended_ms]
    if not jobs:
        return {"prepare job": phase_ms}
    begin, end = min(job.started_ms for job in jobs), max(job.ended_ms for job in jobs)
    job_ms = min(end - begin, phase_ms)
    around_ms = phase_ms - job_ms
    durations = record.progress.duration_ms
    planned_ms = record.progress.timestamp.timestamp() * 1000 + sum(
        durations.get(phase, 0.0) for phase in BEFORE_JOB
    )
    prepare_ms = min(max(0.0, begin - planned_ms), around_ms)
    first_launch_ms = {
        stage.id: min(
            (task.launched_ms for task in record.tasks if task.stage == stage.id),
            default=stage.submitted_ms,
        )
        for stage in record.stages
    }
    running = [(task.launched_ms, task.finished_ms) for task in record.tasks]
    launching = [(stage.submitted_ms, first_launch_ms[stage.id]) for stage in record.stages]
    tasks_ms = covered_ms(running, (begin, end))
    serialise_ms = covered_ms([*running, *launching], (begin, end)) - tasks_ms
    return {
        "prepare job": prepare_ms,
        "serialise tasks": serialise_ms,
        "schedule": max(0.0, job_ms - tasks_ms - serialise_ms),
        "tasks": tasks_ms,
        "after job": around_ms - prepare_ms,
    }


def covered_ms(spans: Iterable[Span], within: Span) -> float:
    """Milliseconds of `within` that the spans cover together."""
    total_ms, reached = 0.0, within[0]
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, within[1])
        if end > begin:
            total_ms += end - begin
            reached = end
    return total_ms


def _task_ms(record: BatchRecord) -> dict[str, float]:
    tasks, operators = record.tasks, record.progress.state_operators
    shuffle_wait_ms = sum(task.shuffle_wait_ms for task in tasks)
    inside = {
        "fetch": sum(task.metrics.get(FETCH, 0.0) for task in tasks) / NS_IN_MS,
        "shuffle write": sum(task.shuffle_write_ns for task in tasks) / NS_IN_MS,
        "state load": sum(operator.custom_metrics.get(STATE_LOAD, 0.0) for operator in operators),
        "state updates": sum(operator.all_updates_time_ms for operator in operators),
        "eviction": sum(operator.all_removals_time_ms for operator in operators),
        "state commit": sum(operator.commit_time_ms for operator in operators),
        "sink": record.counters.get("append ns", 0.0) / NS_IN_MS,
    }
    run_ms = sum(task.run_ms for task in tasks)
    deserialise_ms, result_ms = (
        sum(task.deserialise_ms for task in tasks),
        sum(task.result_ms for task in tasks),
    )
    attempt_ms = sum(task.finished_ms - task.launched_ms for task in tasks)
    return {
        "launch": max(0.0, attempt_ms - run_ms - deserialise_ms - result_ms),
        "deserialise": deserialise_ms,
        **inside,
        "shuffle wait": shuffle_wait_ms,
        "rows": max(0.0, run_ms - sum(inside.values())),
        "result": result_ms,
    }
