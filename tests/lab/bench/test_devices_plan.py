"""The devices suite's plans and the order of its runs, on a bench that runs nothing."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from penstock.errors import BadCall
from penstock_lab.experiment.joint_rig import JointBench
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.experiment.together import Together, TogetherNoted
from penstock_lab.experiment.worker import Job
from penstock_lab.measure.gpu_absence import gpu_absence
from penstock_lab.suites.devices import SUITE
from penstock_lab.suites.devices.cells import Plan
from penstock_lab.suites.devices.modes import (
    BASELINE,
    GPU_WORKERS,
    MODES,
    OURS,
    OURS_COLUMNAR,
    STATIC,
    THROUGHPUT_PANES,
    THROUGHPUT_SPARK,
)
from penstock_lab.suites.devices.plans import Asked
from penstock_lab.suites.devices.records import (
    InflectionRecord,
    OperationRecord,
    Record,
    on_spark,
)
from penstock_lab.suites.devices.runs import runs
from penstock_lab.suites.devices.workloads import WORKLOADS
from support.device_records import CORES, asked

MINUTES_LENT = 9.0


class IdleBench(JointBench):
    """Notes what it is asked to run; every run has failed."""

    def __init__(self) -> None:
        self.asked: list[Together] = []

    def run_together(self, conditions: Together) -> TogetherNoted:
        self.asked.append(conditions)
        return TogetherNoted(error="nothing runs here")


def carried_out(wanted: Asked, folder: Path) -> tuple[list[Record], IdleBench, list[Job]]:
    bench, jobs = IdleBench(), []

    @contextlib.contextmanager
    def opening(plan: Plan, place: Path) -> Iterator[JointBench]:
        yield bench

    def ask(module: str, job: Job, timeout_s: float) -> dict[str, Any]:
        jobs.append(job)
        return {"sizes": []} if job.system == "operations" else {"measured_bytes": None}

    records: list[Record] = []
    steps = runs(wanted, folder, lambda _: None, opening, ask)
    step = next(steps, None)
    while step is not None:
        records.append(step.measure())
        try:
            step = steps.send(records[-1])
        except StopIteration:
            break
    return records, bench, jobs


def test_without_a_gpu_it_is_skipped_in_a_sentence_and_ends_well(tmp_path: Path) -> None:
    shown, file = io.StringIO(), tmp_path / "devices.json"
    wanted = asked(absence=lambda: "no GPU answers here")
    outlet = Outlet(Console(file=shown), file)
    assert SUITE.steps(wanted) == 0
    assert run(SUITE, wanted, tmp_path, lambda _: None, outlet)
    assert shown.getvalue() == "devices: skipped, because no GPU answers here\n"
    assert '"figures": {}' in file.read_text()


def test_a_machine_without_cupy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "penstock_lab.measure.gpu_absence.is_installed", lambda name: name != "cupy"
    )
    assert "pip install" in str(gpu_absence())


def test_one_workload_fits_into_the_time_that_a_machine_is_lent_for() -> None:
    for workload in WORKLOADS:
        plan = asked(workloads=(workload,)).plan
        assert plan.parts == ("latency", "rates")
        assert plan.minutes < MINUTES_LENT
    for part in ("operations", "inflection"):
        assert asked(parts=(part,)).plan.minutes < MINUTES_LENT


def test_parts_and_workloads_are_chosen_by_name_in_any_case() -> None:
    assert asked().plan.parts == ("operations", "inflection", "latency", "rates")
    assert asked(parts=("spark",)).plan.parts == ("latency", "rates")
    assert asked(workloads=("cm1t", "LR1S")).plan.workloads == ("LR1S", "CM1T")
    with pytest.raises(BadCall, match="devices has no workload q4; it has lr1s"):
        asked(workloads=("Q4",))
    with pytest.raises(BadCall, match="devices has no part all; it has operations"):
        asked(parts=("all",))


def test_modes_differ_in_cutting_and_devices_and_in_nothing_else() -> None:
    sliding, tumbling = WORKLOADS["CM2S"], WORKLOADS["LR1T"]
    options = {name: mode.options(sliding) for name, mode in MODES.items()}
    assert options[BASELINE] == options[THROUGHPUT_PANES] == options[THROUGHPUT_SPARK]
    assert options[BASELINE] == {"policy": "fixed", "interval": "10s"}
    assert options["static"] == options["lmstream"] == options[OURS_COLUMNAR] == options[OURS]
    assert options[OURS] == {"policy": "slide", "slide": "5s"}
    assert MODES[OURS].options(tumbling) == {"policy": "running-mean"}
    assert {mode.conf_on(4)[GPU_WORKERS] for mode in MODES.values()} == {"4"}
    keys = [mode.conf.keys() for mode in MODES.values()]
    assert all(each == keys[0] for each in keys)
    unplanned = {
        name for name, mode in MODES.items() if mode.conf["spark.penstock.devices"] != "auto"
    }
    assert unplanned == {THROUGHPUT_SPARK}
    assert BASELINE == "throughput-oriented"
    expand = "spark.penstock.devices.expand"
    assert {name for name, mode in MODES.items() if mode.conf[expand] == "true"} == {BASELINE}
    assert MODES[BASELINE].conf == MODES[THROUGHPUT_PANES].conf | {expand: "true"}


def test_every_mode_meets_every_cell_and_ours_comes_last(tmp_path: Path) -> None:
    wanted = asked(workloads=("CM1T",), parts=("latency",))
    records, bench, _ = carried_out(wanted, tmp_path)
    at = [(each.rate, each.traffic, each.parts[0].conf) for each in bench.asked]
    low, high = at[:3], at[3:]
    assert {(rate, traffic) for rate, traffic, _ in low} == {(1_000, "constant")}
    assert {(rate, traffic) for rate, traffic, _ in high} == {(200_000, "normal")}
    assert [conf for *_, conf in high] == [MODES[name].conf_on(CORES) for name in wanted.plan.modes]
    assert high[-1][2] == MODES[OURS].conf_on(CORES)
    # So small, that a worker's way there and back is all that would be compared.
    left_out = (THROUGHPUT_PANES, STATIC, OURS_COLUMNAR)
    kept = [name for name in wanted.plan.modes if name not in left_out]
    assert [conf for *_, conf in low] == [MODES[name].conf_on(CORES) for name in kept]
    assert len(records) == SUITE.steps(wanted)
    assert all(each.deletes_streams and each.event_speed == 1.0 for each in bench.asked)
    assert all("base_time_ms" in each.generator for each in bench.asked)


def test_the_next_repeat_runs_the_modes_the_other_way_round(tmp_path: Path) -> None:
    wanted = asked(quick=False, workloads=("CM1T",), parts=("latency",), modes=("static", OURS))
    records, bench, _ = carried_out(wanted, tmp_path)
    confs = [each.parts[0].conf for each in bench.asked]
    static, ours = MODES["static"].conf_on(CORES), MODES[OURS].conf_on(CORES)
    assert confs[:8] == [static, ours] * 4
    assert confs[8:16] == [ours, static] * 4
    assert confs[16:] == [static, ours] * 4
    orders = [record.is_reversed for record in on_spark(records)]
    assert orders == [*[False] * 8, *[True] * 8, *[False] * 8]


def test_a_search_begins_with_what_was_run_and_ends_with_its_tries(tmp_path: Path) -> None:
    wanted = asked(workloads=("LR1S",), modes=(BASELINE, OURS))
    _, bench, _ = carried_out(wanted, tmp_path)
    # Nothing holds here, so each try is half of the one before.
    assert [each.rate for each in bench.asked[4:]] == [100_000, 50_000] * 2


def test_operations_are_measured_kind_by_kind_and_points_over_small_sizes(tmp_path: Path) -> None:
    wanted = asked(parts=("operations", "inflection"))
    records, bench, jobs = carried_out(wanted, tmp_path)
    assert not bench.asked
    kinds = wanted.plan.kinds
    assert [type(record) for record in records] == [
        *[OperationRecord] * len(kinds),
        *[InflectionRecord] * len(kinds),
    ]
    assert jobs[0].options["sizes"][0] == 4 << 10
    assert jobs[0].options["sizes"][-1] == 256 << 20
    assert max(jobs[-1].options["sizes"]) == 16 << 20


def test_no_run_is_begun_that_would_end_after_the_time_that_was_given(tmp_path: Path) -> None:
    records, bench, jobs = carried_out(asked(minutes_max=0.1), tmp_path)
    assert records == []
    assert not bench.asked
    assert not jobs
