"""Ledger of a micro-batch: where its time went, made of what Spark has reported of it.

On the stream's thread one thing follows the other, so `wall_ms` adds up to Spark's
`triggerExecution`. Tasks run beside each other: `task_ms` is summed over them, and splits what
`wall_ms["tasks"]` covers. `counters` are those of the driver's JVM between the ends of two batches,
so with several queries at work they are of all of them, and on a cluster they lack what executors
do. A step is measured: by a timer of Spark or of ours, or between two moments that Spark stamps.
What is left when all steps are taken off stands by itself, and is not explained.
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
OPEN, READ = "before the log is read (ns)", "reading rows of the log (ns)"
"""Metrics of a task that reads the log: one begins where the other has ended."""
SCANS = ("eviction scans", "eviction scans skipped")
"""Metrics of the plug-in: scans of state that operators have made, and those they were spared."""
STATE_TIMES = ("time to update", "time to remove", "time to commit changes")
"""Metrics of Spark's stateful operators in a task, in ms; one begins where the other has ended."""
STATE_LOAD = "rocksdbLoadLatencyMs"
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
    began_ms: float | None = None
    ended_ms: float | None = None
    """When its executor had it, and when its result was made. Not known of other machines, whose
    clocks differ."""
    deserialise_ms: float = 0
    run_ms: float = 0
    result_ms: float = 0
    shuffle_write_ns: float = 0
    shuffle_wait_ms: float = 0
    metrics: dict[str, float] = {}

    @property
    def hand_over_ms(self) -> float:
        """From the scheduler to the executor."""
        return 0.0 if self.began_ms is None else max(0.0, self.began_ms - self.launched_ms)

    @property
    def report_ms(self) -> float:
        """From the executor to the driver, until the scheduler has taken the result."""
        return 0.0 if self.ended_ms is None else max(0.0, self.finished_ms - self.ended_ms)

    @property
    def launch_ms(self) -> float:
        """The rest of the attempt. Some of its plan was read before it began, and is in the
        time of its handing over as well: as much of it as can be is taken off only once."""
        measured_ms = self.run_ms + self.result_ms + max(self.deserialise_ms, self.hand_over_ms)
        return max(0.0, self.finished_ms - self.launched_ms - measured_ms - self.report_ms)


class BatchRecord(msgspec.Struct, frozen=True):
    """All that the plug-in remembers of one batch."""

    progress: Progress
    planned_ms: float | None = None
    """When its plan was ready."""
    execution_started_ms: float | None = None
    """When Spark began to execute the plan, having described it."""
    execution_ended_ms: float | None = None
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
    """By step within tasks, summed over them. `open`: from a task's start until it reads the log,
    or asks for the first row that it writes there; `read`: from there to the source's end; `rows`:
    to the last row that it writes; `sink`: of encoding and appending. The others are parts of these
    and overlap: `state updates` are as Spark measures them, with the rows that were read for them
    and the `shuffle wait`. Of attempts around their run there are `hand over` and `report`, where
    the driver is in the JVM of its tasks. Not measured, but left over: `launch`, of what is around
    the run, and `unmeasured`, of the run."""
    counters: dict[str, float]
    """`task bytes`: of `broadcast bytes` the tasks of its stages, as Spark serialises them."""
    unmeasured_ms: float
    """What no timer covers of `trigger_ms`: `other`, and of `tasks` the share that is left in
    them."""

    @property
    def explained(self) -> float:
        """The share of the batch that was measured step by step."""
        if not self.trigger_ms:
            return 1.0
        return 1 - self.unmeasured_ms / self.trigger_ms


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
        "task bytes": record.counters.get("task bytes", 0),
        **{name: _metric_sum(record.tasks, name) for name in SCANS},
    }
    wall_ms, task_ms = _wall_ms(record, trigger_ms), _task_ms(record)
    attempts_ms = sum(task.finished_ms - task.launched_ms for task in record.tasks)
    left_ms = task_ms["launch"] + task_ms["unmeasured"]
    share = min(1.0, left_ms / attempts_ms) if attempts_ms else 0.0
    return BatchSteps(
        progress.batch_id,
        progress.num_input_rows,
        trigger_ms,
        wall_ms,
        task_ms,
        counters,
        unmeasured_ms=wall_ms["other"] + share * wall_ms.get("tasks", 0.0),
    )


def _wall_ms(record: BatchRecord, trigger_ms: float) -> dict[str, float]:
    durations = record.progress.duration_ms
    wall = {PHASES[phase]: durations.get(phase, 0.0) for phase in BEFORE_JOB}
    wall |= _job_ms(record)
    for phase, took_ms in durations.items():
        if phase not in (WHOLE, JOB_PHASE, *BEFORE_JOB):
            wall[PHASES.get(phase, phase)] = took_ms
    # Spark rounds every phase to a millisecond, so their sum may pass the whole by a few.
    wall["other"] = max(0.0, trigger_ms - sum(wall.values()))
    return wall


def _job_ms(record: BatchRecord) -> dict[str, float]:
    """The phase in which Spark runs the batch's jobs, between the moments that Spark stamps."""
    jobs = [job for job in record.jobs if job.ended_ms]
    if not jobs:
        return {}
    begin, end = min(job.started_ms for job in jobs), max(job.ended_ms for job in jobs)
    covered: list[Span] = []
    in_job: dict[str, float] = {}
    reached_ms = 0.0
    # Where several are under way, the time is that of the first of them here.
    for step, spans in _job_spans(record, jobs).items():
        covered += spans
        total_ms = covered_ms(covered, (begin, end))
        in_job[step], reached_ms = total_ms - reached_ms, total_ms
    return {
        "describe plan": _between(record.planned_ms, record.execution_started_ms),
        "build job": _between(record.execution_started_ms, begin),
        **{step: in_job[step] for step in ("schedule", "serialise tasks", "tasks", "results")},
        "end job": _between(end, record.execution_ended_ms),
    }


def _job_spans(record: BatchRecord, jobs: Iterable[Job]) -> dict[str, list[Span]]:
    """When the batch's jobs were at which step: `serialise tasks` from a stage's submission to its
    first launch, `results` from a last task's end to that of its stage, and from there to that of
    the job; `schedule` up to a submission, and while a stage has no task at work."""
    running = {stage.id: (stage.submitted_ms, stage.submitted_ms) for stage in record.stages}
    for stage in record.stages:
        tasks = [task for task in record.tasks if task.stage == stage.id]
        if tasks:
            launched_ms = min(task.launched_ms for task in tasks)
            running[stage.id] = launched_ms, max(task.finished_ms for task in tasks)
    results = [(running[stage.id][1], stage.completed_ms) for stage in record.stages]
    waits = list(running.values())
    for job in jobs:
        within = [
            stage
            for stage in record.stages
            if job.started_ms <= stage.submitted_ms and stage.completed_ms <= job.ended_ms
        ]
        starts = sorted(stage.submitted_ms for stage in within)
        waits += [
            (moment_ms, next((start for start in starts if start >= moment_ms), moment_ms))
            for moment_ms in (job.started_ms, *(stage.completed_ms for stage in within))
        ]
        if within:
            results.append((max(stage.completed_ms for stage in within), job.ended_ms))
    return {
        "tasks": [(task.launched_ms, task.finished_ms) for task in record.tasks],
        "serialise tasks": [(stage.submitted_ms, running[stage.id][0]) for stage in record.stages],
        "results": results,
        "schedule": waits,
    }


def _between(begin_ms: float | None, end_ms: float | None) -> float:
    """Milliseconds between two moments; 0 where one of them is not known."""
    return max(0.0, end_ms - begin_ms) if begin_ms is not None and end_ms is not None else 0.0


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
    run_ms, deserialise_ms, result_ms = (
        sum(task.run_ms for task in tasks),
        sum(task.deserialise_ms for task in tasks),
        sum(task.result_ms for task in tasks),
    )
    timed = [_timed_ms(record, stage) for stage in sorted({task.stage for task in tasks})]
    timed_ms = sum(sum(steps.values()) for steps in timed)
    return {
        "hand over": sum(task.hand_over_ms for task in tasks),
        "report": sum(task.report_ms for task in tasks),
        "launch": sum(task.launch_ms for task in tasks),
        "deserialise": deserialise_ms,
        **{step: sum(steps.get(step, 0.0) for steps in timed) for step in ("open", "read", "rows")},
        "fetch": _metric_sum(tasks, FETCH) / NS_IN_MS,
        "shuffle write": sum(task.shuffle_write_ns for task in tasks) / NS_IN_MS,
        "shuffle wait": sum(task.shuffle_wait_ms for task in tasks),
        "state load": sum(operator.custom_metrics.get(STATE_LOAD, 0.0) for operator in operators),
        "state updates": sum(operator.all_updates_time_ms for operator in operators),
        "eviction": sum(operator.all_removals_time_ms for operator in operators),
        "state commit": sum(operator.commit_time_ms for operator in operators),
        "sink": record.counters.get("append ns", 0.0) / NS_IN_MS,
        "unmeasured": max(0.0, run_ms - timed_ms),
        "result": result_ms,
    }


def _timed_ms(record: BatchRecord, stage: int) -> dict[str, float]:
    """Times of a stage's tasks that follow each other, as far as timers in them reach.

    Those that read the log are timed to its end, those that write to it to their own. A task's
    start is before it reads its plan, which Spark counts as deserialising and not as running. Of
    other stages only what their stateful operators measure is known. Tasks that write are those of
    the last stage; where they read the log too, their rows end with the log's.
    """
    tasks = [task for task in record.tasks if task.stage == stage]
    last = max(task.stage for task in record.tasks)
    deserialise_ms = sum(task.deserialise_ms for task in tasks)
    sink_open_ms, rows_ms, append_ms = (
        record.counters.get(name, 0.0) / NS_IN_MS if stage == last else 0.0
        for name in ("sink open ns", "sink rows ns", "append ns")
    )
    if any(READ in task.metrics for task in tasks):
        open_ms, read_ms = (_metric_sum(tasks, name) / NS_IN_MS for name in (OPEN, READ))
        opened_ms = max(0.0, open_ms - deserialise_ms)
        return {"open": opened_ms, "read": read_ms, "sink": append_ms}
    if rows_ms:
        opened_ms = max(0.0, sink_open_ms - deserialise_ms)
        return {"open": opened_ms, "rows": rows_ms, "sink": append_ms}
    return {"state": sum(_metric_sum(tasks, name) for name in STATE_TIMES)}


def _metric_sum(tasks: Iterable[Task], name: str) -> float:
    return sum(task.metrics.get(name, 0.0) for task in tasks)
