"""Figures of operations by themselves: times by size and device, and inflection points. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.figures import Figure, Goal, middle, ordered
from penstock_lab.measure.inflection import LearnedPoint, off_by
from penstock_lab.percentiles import median
from penstock_lab.suites.devices.cells import KIB, MIB
from penstock_lab.suites.devices.records import InflectionRecord, OperationRecord

ERROR_GOAL = 1.5
ERROR_MAX = 100.0
"""The error of a point that was not found, or is further off than this."""
STARTS = {10.0: "high", 0.1: "low"}


def size_name(size: int) -> str:
    """A size as people write it: 256KB, 4MB."""
    return f"{size // MIB}MB" if size >= MIB else f"{size // KIB}KB"


def operation_figures(records: Sequence[OperationRecord]) -> list[Figure]:
    """Times of every operation, device and size, medians over the repeats; transfers apart."""
    made: list[Figure] = []
    for kind in ordered(record.kind for record in records):
        repeats = [record for record in records if record.kind == kind]
        for size in ordered(each.bytes for record in repeats for each in record.sizes):
            here = [each for record in repeats for each in record.sizes if each.bytes == size]
            name, words = size_name(size), f"{kind} over {size_name(size)}"
            for key, sentence, values in (
                (f"cpu.{name}_ms", f"{words}, one core", [each.cpu_ms for each in here]),
                (f"gpu.{name}_ms", f"{words}, the GPU alone", [each.gpu_ms for each in here]),
                (
                    *(f"gpu.{name}_transfer_ms", f"{words}, moved there and back"),
                    [each.transfer_ms for each in here],
                ),
            ):
                made += middle(f"operations.{kind}.{key}", "ms", sentence, values)
    return made


def inflection_figures(records: Sequence[InflectionRecord]) -> list[Figure]:
    """Measured and learned points of every operation, and the greatest error of ours."""
    made: list[Figure] = []
    errors: dict[str, float] = {}
    for kind in ordered(record.kind for record in records):
        here = [r for r in records if r.kind == kind and r.measured_bytes is not None]
        name = f"inflection.{kind}"
        points_kb = [record.measured_bytes / KIB for record in here if record.measured_bytes]
        made += middle(f"{name}.measured_kb", "KB", "where the devices cross", points_kb)
        for policy, factor in ordered((p.policy, p.factor) for r in here for p in r.points):
            key = f"{policy}_from_{STARTS.get(factor, f'{factor:g}')}"
            chosen = [
                (record, point)
                for record in here
                for point in record.points
                if (point.policy, point.factor) == (policy, factor)
            ]
            found_kb = [point.found_bytes / KIB for _, point in chosen if point.found_bytes]
            words = f"the point that {policy} arrives at, {factor:g} times the true one at first"
            made += middle(f"{name}.{key}_kb", "KB", words, found_kb)
            error = median([error_of(record, point) for record, point in chosen])
            if policy == "ours" and error is not None:
                errors[f"{kind}, {factor:g} times at first"] = error
    pointed = {record.kind for record in records if record.measured_bytes is not None}
    without = ordered(record.kind for record in records if record.kind not in pointed)
    return [*made, *_headline(errors, without)]


def error_of(record: InflectionRecord, point: LearnedPoint) -> float:
    """The factor by which a learned point is off."""
    return min(off_by(point.found_bytes, record.measured_bytes or 0.0), ERROR_MAX)


def _headline(errors: dict[str, float], without: Sequence[str]) -> list[Figure]:
    if not errors:
        return []
    worst = max(errors, key=lambda name: errors[name])
    sentence = f"ours against the point that was measured, after 100 batches, the worst: {worst}"
    if without:
        sentence += f"; without a point: {', '.join(without)}"
    goal = Goal("at most", ERROR_GOAL)
    every = tuple(errors.values())
    return [Figure("headline.inflection_error", "x", sentence, errors[worst], every, goal)]
