"""The difference that another machine would make: the last plans of a query, planned anew by the
calibration of that machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.devices.calibration import Calibration, MachineCosts
from penstock.devices.costs import QueryCosts, stage_size
from penstock.devices.policies.ours import cheapest_split, split_table, split_time
from penstock.model.device_plans import (
    BatchToPlan,
    ExplainedPlan,
    MachineBody,
    OperationBody,
    PipelineBody,
)


def device_sentences(
    calibration: Calibration,
    operations: Sequence[OperationBody],
    plans: Sequence[ExplainedPlan],
) -> list[str]:
    """Sentences on what the GPU of a calibrated machine would change for these batches: operations
    that it would take, and the time of all operations against that machine's own CPU."""
    machine = calibration.machine
    if machine.gpu is None:
        return [f"{machine} has no GPU either; give a calibration of a machine that has one"]
    if not operations or not plans:
        return ["no batch with operations that can leave Spark was planned lately"]
    costs, pipeline = _costs_on(calibration, operations)
    moved: Counter[str] = Counter()
    cpu_ms = split_ms = 0.0
    for plan in plans:
        batch = BatchToPlan(plan.cut, 0.0, plan.bytes_by_task, plan.rows, machine.cores)
        table = split_table(costs, stage_size(pipeline, batch), has_gpu=True)
        devices = cheapest_split(table)
        cpu_ms += split_time(table, ["cpu"] * len(devices)).wall
        split_ms += split_time(table, devices).wall
        moved.update(
            {
                operation.kind
                for operation, device in zip(operations, devices, strict=True)
                if device == "gpu"
            }
        )
    count = len(plans)
    if not moved:
        return [
            (
                f"with {machine} nothing would change: in none of the last {count} batches is "
                "its GPU cheaper for any operation"
            )
        ]
    gains = ", ".join(f"{kind} in {batches} of {count}" for kind, batches in moved.most_common())
    return [
        f"with {machine} the GPU would take: {gains} of the last batches",
        (
            f"their operations would take {split_ms / count:.3g} ms a batch there, and "
            f"{cpu_ms / count:.3g} ms on that machine's CPU alone"
        ),
    ]


def _costs_on(
    calibration: Calibration, operations: Sequence[OperationBody]
) -> tuple[QueryCosts, PipelineBody]:
    machine = calibration.machine
    pipeline = PipelineBody(
        operations=tuple(operations),
        machines=(MachineBody(machine.cpu, machine.cores, machine.gpu, machine.cuda, gpus=1),),
        paths=("columnar",),
    )
    return QueryCosts(pipeline, [MachineCosts(machine, calibration)]), pipeline
