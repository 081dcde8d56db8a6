"""Plans of batches as `penstock explain` shows them: paths, devices, reasons, and their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.model.device_plans import ExplainedOperation, ExplainedPlan, QueryDevices
from penstock.model.plan_notes import PlanNoteBody

PLAN_COLUMNS = ("ago", "part", "runs on", "expected", "measured", "reason")


def devices_summary(devices: QueryDevices) -> list[str]:
    """The figures of a query's planning, a line each."""
    lines = [
        (
            f"devices {devices.devices}, policy {devices.policy}: {devices.batches} batches "
            f"planned, {devices.probes} of them probes"
        ),
        f"machines: {', '.join(devices.machines) or 'not named'}",
        f"calibration: {devices.calibration}",
    ]
    if devices.inflection_bytes is not None:
        lines.append(f"the GPU is cheaper from {_size(devices.inflection_bytes)} in a task on")
    if devices.tuned_bytes is not None:
        lines.append(f"inflection point by Eq. 10: {_size(devices.tuned_bytes)}")
    if devices.splits:
        lines.append(f"{devices.splits} parts were made because a GPU was full")
    return lines + [f"note: {note}" for note in devices.notes]


def note_lines(notes: Sequence[PlanNoteBody]) -> list[str]:
    """The notes of the plug-in's rules on a query's plan, a line each."""
    return [
        f"{note.rule}, operator {note.operator}, since batch {note.since_batch}: {note.text}"
        for note in notes
    ]


def plan_rows(plans: Sequence[ExplainedPlan]) -> Iterator[tuple[str, ...]]:
    """The rows of a table: for each plan one of its path, then one for each operation."""
    for plan in plans:
        path: str = plan.path
        if plan.ran_path not in (None, plan.path):
            path = f"{plan.path} (ran: {plan.ran_path})"
        yield (
            f"{plan.ago_ms / 1000:.1f} s",
            "probe" if plan.is_probe else "batch",
            path,
            _ms(plan.expected_ms),
            _ms(plan.measured_ms),
            f"{plan.rows} rows, {_size(sum(plan.bytes_by_task))}; {plan.reason}",
        )
        for operation in plan.operations:
            yield (
                "",
                f"  {operation.kind} {operation.text}".rstrip(),
                _runs_on(operation),
                _ms(operation.expected_ms),
                _ms(operation.measured_ms),
                operation.reason,
            )


def _runs_on(operation: ExplainedOperation) -> str:
    """The device of the plan, and how many tasks ran elsewhere, if any did."""
    ran = operation.ran_tasks
    elsewhere = sum(tasks for device, tasks in ran.items() if device != operation.device)
    if not elsewhere:
        return operation.device
    others = "cpu" if operation.device == "gpu" else "gpu"
    return f"{operation.device} ({others}: {elsewhere} of {sum(ran.values())} tasks)"


def _ms(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:.3g} ms"


def _size(size_bytes: float) -> str:
    if size_bytes >= 1e6:
        return f"{size_bytes / 1e6:.3g} MB"
    return f"{size_bytes / 1e3:.3g} KB"
