"""Plans on the wire, as the plug-in writes and reads them: the vectors that its Scala form answers,
too."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from penstock.devices.placement import TaskReport
from penstock.model.device_plans import BatchPlan, PipelineBody, PlanReport

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "device_plans.json").read_text())


def written(value: Any) -> Any:
    """A value as it goes over the wire."""
    return json.loads(msgspec.json.encode(value))


def is_within(part: Any, whole: Any) -> bool:
    """Whether all that a value has is in another one; what is left out there has its default."""
    if isinstance(part, dict):
        return all(name in whole and is_within(part[name], whole[name]) for name in part)
    if isinstance(part, list):
        return len(part) == len(whole) and all(map(is_within, part, whole))
    return bool(part == whole)


def test_the_server_reads_every_pipeline_and_report_of_the_plug_in() -> None:
    for vector in VECTORS["pipelines"]:
        pipeline = msgspec.convert(vector, PipelineBody)
        assert is_within(written(pipeline), vector)
    for vector in VECTORS["reports"]:
        report = msgspec.convert(vector["report"], PlanReport)
        assert is_within(written(report), vector["report"])


def test_the_server_writes_plans_and_workers_write_reports_as_the_plug_in_reads_them() -> None:
    for vector in VECTORS["plans"]:
        assert written(msgspec.convert(vector, BatchPlan)) == vector
    tasks = [task for vector in VECTORS["reports"] for task in vector["tasks"]]
    for answer in chain.from_iterable(tasks):
        report = msgspec.convert(answer, TaskReport)
        assert is_within(written(report), answer)
