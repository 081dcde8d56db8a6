"""Plans of batches on the wire: the pipeline that a question names, the plan that its answer has,
what a finished batch measured of it, and all of that explained.

Reports pass over keys that this version does not know: a newer plug-in tells more, and is answered
all the same. Questions do not: what they ask for is done or refused.

A question without `pipeline` gets an answer without `plan`, and a report without `plan` teaches
planning nothing. docs/devices.md says what the words mean.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from penstock.model.numbers import Milliseconds, Number, Positive

OPERATIONS_MAX = 64
MACHINES_MAX = 1_000

PathName = Literal["spark", "panes", "columnar"]
Device = Literal["cpu", "gpu"]
OperationKind = Literal["parse", "filter", "project", "expand", "aggregate", "join", "sort", "topk"]
DeviceChoice = Literal["auto", "spark", "panes", "cpu", "gpu"]
"""The setting of a query: whatever is cheapest, or one path, or the columnar path on one device."""
PlanPolicy = Literal["ours", "ours-columnar", "lmstream", "static", "all-cpu", "all-gpu"]
OUR_POLICIES = frozenset({"ours", "ours-columnar"})
"""Those that plan by what was measured; the second never takes a path through Spark."""
FallbackCause = Literal["busy", "full", "gone", "absent", "driver"]
"""Why tasks that were planned for a GPU ran on the CPU: as many workers as the device may have were
at it, it had no memory left even for a part, it was lost, there was none, its driver is too old."""

ShortText = Annotated[str, msgspec.Meta(max_length=300)]


# In questions


class OperationBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One operation of a pipeline. `text` is for people, such as `sum(cpu) by category`."""

    kind: OperationKind
    text: ShortText = ""


class MachineBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind of machine that tasks run on, and how many of it there are. A machine without a GPU
    has `gpu` and `cuda` null; `gpu_bytes` is the memory of one device."""

    cpu: ShortText
    cores: Positive
    gpu: ShortText | None = None
    cuda: ShortText | None = None
    gpus: Number = 0
    gpu_bytes: Number | None = None
    count: Positive = 1


class PipelineBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of a query below its shuffle that can be planned, and where it may run.

    `operations` are in the order in which rows pass through them; `paths` those that this plan can
    take. `source` is the number of the input whose rows they are. `windows` is the number of
    windows that a row falls into. `gpu_workers` is how many workers may be at one GPU at once.
    """

    operations: Annotated[tuple[OperationBody, ...], msgspec.Meta(max_length=OPERATIONS_MAX)]
    machines: Annotated[tuple[MachineBody, ...], msgspec.Meta(max_length=MACHINES_MAX)] = ()
    paths: Annotated[tuple[PathName, ...], msgspec.Meta(min_length=1, max_length=3)] = ("spark",)
    devices: DeviceChoice = "auto"
    policy: PlanPolicy = "ours"
    source: Number = 0
    windows: Positive = 1
    gpu_workers: Positive = 1


# In reports


class OperationReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """An operation of a batch, or `count` neighbours from the `first` on that ran as one step.

    `ms`, `bytes` and `rows` (of its input) are sums over the `tasks` that ran it on this device.
    """

    first: Number
    device: Device
    ms: Milliseconds
    bytes: Number = 0
    rows: Number = 0
    tasks: Positive = 1
    count: Positive = 1


class FallbackReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tasks of a batch that ran on the CPU though a GPU was planned; `text` names the error."""

    cause: FallbackCause
    tasks: Positive = 1
    text: ShortText = ""


class PlanReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The planned part of a finished batch, as it ran; times and bytes are sums over its tasks.

    `path` is the one that was taken. `stage_ms` is the run time of the tasks below the shuffle,
    `tasks` how many had rows, `bytes` and `rows` their input, `bytes` as the plan had them, so that
    costs are learned over what they are reckoned from. On the columnar path `worker_ms` is
    what the way to the workers and back took: all of `stage_ms` that is neither an operation nor a
    transfer. `splits` counts the parts that were made because a GPU was full,
    `started_workers` the workers that were started for it. `rule_ms` is what the driver took to
    carry the plan out when it planned the batch.
    """

    path: PathName
    stage_ms: Milliseconds = 0.0
    tasks: Number = 0
    bytes: Number = 0
    rows: Number = 0
    worker_ms: Milliseconds = 0.0
    to_gpu_ms: Milliseconds = 0.0
    to_gpu_bytes: Number = 0
    to_cpu_ms: Milliseconds = 0.0
    to_cpu_bytes: Number = 0
    operations: Annotated[
        tuple[OperationReport, ...], msgspec.Meta(max_length=4 * OPERATIONS_MAX)
    ] = ()
    fallbacks: Annotated[tuple[FallbackReport, ...], msgspec.Meta(max_length=16)] = ()
    splits: Number = 0
    started_workers: Number = 0
    rule_ms: Milliseconds = 0.0


# In answers


class PlannedOperation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The device of one operation and why; `expected_ms` is the sum over the batch's tasks."""

    kind: OperationKind
    device: Device
    reason: str
    expected_ms: float | None = None


class BatchPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """The plan of one batch, made with its cut. On paths other than `columnar` nothing is done with
    the devices. `expected_ms` is the run time of the tasks below the shuffle, summed over them.

    `must_not_fall_back`: a task that cannot have the GPU fails the batch. `is_probe`: the plan is
    not the cheapest known; it is tried to learn what it costs. `bytes` are those that its tasks
    will read.
    """

    path: PathName
    reason: str
    operations: tuple[PlannedOperation, ...] = ()
    expected_ms: float | None = None
    policy: PlanPolicy = "ours"
    is_probe: bool = False
    must_not_fall_back: bool = False
    bytes: int = 0


# Explained


class ExplainedOperation(msgspec.Struct, frozen=True):
    """An operation of a batch: where it was to run, why, and what it was to take and took.

    Neighbours that were reported as one step share its `measured_ms`, by what was expected of each.
    `ran_tasks` are the tasks that ran it, by device: some may not have had the one of the plan.
    """

    kind: OperationKind
    text: str
    device: Device
    reason: str
    expected_ms: float | None = None
    measured_ms: float | None = None
    ran_tasks: dict[Device, int] = {}


class ExplainedPlan(msgspec.Struct, frozen=True):
    """The plan of one of the last batches; `ran_path` is null until its report is in."""

    ago_ms: float
    cut: int
    path: PathName
    reason: str
    policy: PlanPolicy
    is_probe: bool
    rows: int
    bytes_by_task: tuple[int, ...]
    operations: tuple[ExplainedOperation, ...]
    cores: int = 1
    expected_ms: float | None = None
    measured_ms: float | None = None
    ran_path: PathName | None = None


class KnownCost(msgspec.Struct, frozen=True):
    """The cost of a part for a task, for each MB of the pipeline's input; not measured: shipped."""

    fixed_ms: float
    ms_per_mb: float
    is_measured: bool


class KnownCosts(msgspec.Struct, frozen=True):
    """The costs of a query where it runs, without a GPU: of each operation on the CPU, of the way
    to a worker, of the paths through Spark. `shares` are the bytes that go into each operation
    against those of the batch, at the end those that come out; `machines` is how many there are."""

    operations: tuple[KnownCost, ...]
    worker: KnownCost
    paths: dict[PathName, KnownCost]
    shares: tuple[float, ...]
    machines: int = 1
    gpu_workers: int = 1


class QueryDevices(msgspec.Struct, frozen=True):
    """Planning of one query, explained: what it plans by, and its last plans, newest first.

    `inflection_bytes` is the size of a partition from which on the GPU is cheaper for the whole
    pipeline, `tuned_bytes` the one that Eq. 10 has arrived at; `fallbacks` counts tasks by cause.
    """

    devices: DeviceChoice
    policy: PlanPolicy
    machines: tuple[str, ...]
    calibration: str
    plans: tuple[ExplainedPlan, ...]
    batches: int = 0
    probes: int = 0
    fallbacks: dict[str, int] = {}
    splits: int = 0
    operations: tuple[OperationBody, ...] = ()
    inflection_bytes: float | None = None
    tuned_bytes: float | None = None
    notes: tuple[str, ...] = ()
    costs: KnownCosts | None = None


# Between the stages of the server


class BatchToPlan(msgspec.Struct, frozen=True):
    """A batch that was just cut: the bytes that each of its tasks will read, by substream, and how
    much later than expected it may be visible (None: it has no deadline). `run` tells the runs of
    its query apart."""

    cut: int
    at_ms: float
    bytes_by_task: tuple[int, ...]
    rows: int
    cores: int
    oldest_age_ms: float = 0.0
    spare_ms: float | None = None
    slide_ms: float | None = None
    run: str = ""
