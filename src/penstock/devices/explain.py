"""Planning explained: the last plans of a query, why they were made, and what they took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.devices.calibration import machine_of
from penstock.devices.components import GPU_REFUSES
from penstock.devices.costs import QueryCosts, inflection_bytes
from penstock.devices.mapping import gpu_absence
from penstock.devices.query_planning import KeptPlan, QueryPlanning
from penstock.fit.line import Line
from penstock.model.device_plans import (
    Device,
    ExplainedOperation,
    ExplainedPlan,
    KnownCost,
    KnownCosts,
    OperationReport,
    PipelineBody,
    PlannedOperation,
    QueryDevices,
)


def explained_devices(planning: QueryPlanning, calibration: str, now_ms: float) -> QueryDevices:
    """The planning of one query, its newest plan first."""
    pipeline, costs = planning.pipeline, planning.costs
    absence = gpu_absence(pipeline.machines)
    notes = planning.fallbacks.sentences()
    left_out = planning.left_out()
    if left_out is not None:
        notes.append(left_out)
    gpu_left_out = planning.gpu_left_out()
    if absence is None and gpu_left_out is not None:
        notes.append(gpu_left_out)
    if absence is not None:
        notes.append(
            f"{absence}: operations run on the CPU; 'penstock explain --calibration FILE' says "
            "what a GPU would change, by a calibration of a machine that has one"
        )
    return QueryDevices(
        devices=pipeline.devices,
        policy=pipeline.policy,
        machines=tuple(f"{body.count} x {machine_of(body)}" for body in pipeline.machines),
        calibration=calibration,
        plans=tuple(_plan(kept, now_ms) for kept in reversed(planning.plans.values())),
        batches=planning.probing.batches,
        probes=planning.probing.probes,
        fallbacks=dict(planning.fallbacks.tasks),
        splits=planning.fallbacks.splits,
        operations=pipeline.operations,
        inflection_bytes=None if absence is not None else pipeline_inflection(costs),
        tuned_bytes=planning.tuning.inflection_bytes if pipeline.policy == "lmstream" else None,
        notes=tuple(notes),
        costs=known_costs(pipeline, costs),
    )


def known_costs(pipeline: PipelineBody, costs: QueryCosts) -> KnownCosts:
    """The costs of a query as they are known now, but for those on a GPU."""
    operations = [
        _known(costs.operation(index, "cpu"), costs.is_operation_measured(index, "cpu"))
        for index in range(len(costs.kinds))
    ]
    return KnownCosts(
        tuple(operations),
        _known(costs.worker(), costs.is_measured("columnar")),
        {
            path: _known(costs.path(path), costs.is_measured(path))
            for path in pipeline.paths
            if path != "columnar"
        },
        tuple(costs.share(index) for index in range(len(costs.kinds) + 1)),
        max(sum(machine.count for machine in pipeline.machines), 1),
        pipeline.gpu_workers,
    )


def _known(line: Line, is_measured: bool) -> KnownCost:
    return KnownCost(line.fixed, line.slope * 1e6, is_measured)


def pipeline_inflection(costs: QueryCosts) -> float | None:
    """The size of a partition from which on all operations together are cheaper on the GPU; None if
    they never are, or it does not take all of them."""
    if GPU_REFUSES.intersection(costs.kinds):
        return None
    return inflection_bytes(costs.line_on("cpu"), costs.line_on("gpu"))


def _plan(kept: KeptPlan, now_ms: float) -> ExplainedPlan:
    plan, batch, ran = kept.plan, kept.batch, kept.report
    steps = () if ran is None else ran.operations
    return ExplainedPlan(
        ago_ms=now_ms - batch.at_ms,
        cut=batch.cut,
        path=plan.path,
        reason=plan.reason,
        policy=plan.policy,
        is_probe=plan.is_probe,
        rows=batch.rows,
        bytes_by_task=batch.bytes_by_task,
        cores=batch.cores,
        operations=tuple(
            ExplainedOperation(
                operation.kind,
                kept.pipeline.operations[index].text,
                operation.device,
                operation.reason,
                operation.expected_ms,
                measured_ms(index, plan.operations, steps),
                ran_tasks(index, steps),
            )
            for index, operation in enumerate(plan.operations)
        ),
        expected_ms=plan.expected_ms,
        measured_ms=None if ran is None else ran.stage_ms,
        ran_path=None if ran is None else ran.path,
    )


def ran_tasks(index: int, steps: Sequence[OperationReport]) -> dict[Device, int]:
    """The tasks that ran an operation, by device."""
    tasks: Counter[Device] = Counter()
    for step in steps:
        if step.first <= index < step.first + step.count:
            tasks[step.device] += step.tasks
    return dict(tasks)


def measured_ms(
    index: int, planned: Sequence[PlannedOperation], steps: Sequence[OperationReport]
) -> float | None:
    """The time of an operation by the steps that ran it, on whichever device: of a step with
    neighbours its part by what was expected of them. None if no step did."""
    parts = []
    for step in steps:
        if not step.first <= index < step.first + step.count:
            continue
        neighbours = planned[step.first : step.first + step.count]
        expected = [each.expected_ms or 0.0 for each in neighbours]
        total_ms = sum(expected)
        share = expected[index - step.first] / total_ms if total_ms else 1 / step.count
        parts.append(step.ms * share)
    return sum(parts) if parts else None
