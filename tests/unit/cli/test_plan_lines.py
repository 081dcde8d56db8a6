"""`penstock explain` on planned batches: paths, devices, reasons, and another machine's GPU."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
from click.testing import CliRunner

from penstock.cli.main import penstock
from penstock.cli.plan_lines import devices_summary, plan_rows
from penstock.client import Client
from penstock.devices.components import DEFAULT_LINES
from penstock.devices.planner import DevicePlanner, NoCalibrations
from penstock.model.device_plans import OperationReport, PlanReport
from penstock.model.requests import BatchAdmissionBody, BatchInputBody, BatchReport, TermsBody
from support.device_worlds import CPU_MACHINE, batch_of, machine_costs, pipeline_of
from support.servers.http_server import Served

NAME = "planned"


def test_every_plan_has_a_row_and_every_operation_one_below_it() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("filter", "sort", paths=("columnar",))
    planner.plan("q", pipeline, batch_of(1, 2_000_000))
    steps = (OperationReport(0, "gpu", 4.0, count=2),)
    ran = PlanReport("panes", 40.0, 1, 2_000_000, 9, operations=steps)
    planner.heard("q", pipeline, [BatchReport(1, visible_ms=50.0, plan=ran)])
    devices = planner.explain("q", 2_500.0)
    assert devices is not None
    batch, first, second = plan_rows(devices.plans)
    assert batch[:3] == ("1.5 s", "batch", "columnar (ran: panes)")
    assert batch[4] == "40 ms"
    assert "2 MB" in batch[5]
    assert (first[1].strip(), first[2]) == ("filter", "gpu")
    assert second[1].strip() == "sort"
    lines = devices_summary(devices)
    assert lines[0] == "devices auto, policy ours: 1 batches planned, 0 of them probes"
    assert any(line.startswith("the GPU is cheaper from") for line in lines)


def test_tasks_that_ran_on_another_device_than_the_planned_one_are_counted() -> None:
    planner = DevicePlanner(NoCalibrations())
    pipeline = pipeline_of("sort", policy="all-gpu", paths=("columnar",))
    planner.plan("q", pipeline, batch_of(1, *[2_000_000] * 4))
    steps = (OperationReport(0, "gpu", 4.0), OperationReport(0, "cpu", 60.0, tasks=3))
    ran = PlanReport("columnar", 80.0, 4, 8_000_000, 9, operations=steps)
    planner.heard("q", pipeline, [BatchReport(1, visible_ms=50.0, plan=ran)])
    devices = planner.explain("q", 2_500.0)
    assert devices is not None
    (plan,) = devices.plans
    assert plan.operations[0].ran_tasks == {"gpu": 1, "cpu": 3}
    _, sort = plan_rows(devices.plans)
    assert sort[2] == "gpu (cpu: 3 of 4 tasks)"


def test_explain_shows_plans_and_what_a_gpu_would_change(tmp_path: Path) -> None:
    calibration = tmp_path / "gpu.json"
    calibration.write_bytes(msgspec.json.encode(machine_costs(DEFAULT_LINES).calibration()))

    def run(*options: str) -> tuple[int, str]:
        data = str(tmp_path / "data")
        ended = CliRunner().invoke(penstock, ["explain", NAME, *options, "--data", data])
        return ended.exit_code, ended.stdout

    with Served(tmp_path / "data") as served, Client(served.url, served.token) as client:
        client.create(NAME, "k bigint")
        client.append(NAME, pa.table({"k": [1, 2, 3]}))
        question = BatchAdmissionBody(
            query="0-1-2",
            application="app",
            cores=2,
            inputs=[BatchInputBody(0, NAME)],
            terms=TermsBody(),
            name=NAME,
        )
        client.admit_batch(question)
        code, out = run()
        assert code == 0
        assert "runs on" not in out
        pipeline = pipeline_of("filter", "sort", machines=(CPU_MACHINE,))
        answer = client.admit_batch(msgspec.structs.replace(question, pipeline=pipeline))
        assert answer.plan is not None
        code, out = run("--calibration", str(calibration))
        assert code == 0
        assert "runs on" in out
        assert "note: no machine has a GPU" in out
        assert "with a gpu y here nothing would change" in out
