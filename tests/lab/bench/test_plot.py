"""The picture: drawn from what was measured, whatever of it counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_lab.experiment.latency import Second
from penstock_lab.experiment.plan import plan_of
from penstock_lab.experiment.query_sets import QUERY_SETS
from penstock_lab.experiment.record import Measured, Run
from penstock_lab.experiment.verdict import Verdict
from penstock_lab.suites.compared import Cell, Record, draw
from support.skip_reasons import NO_MATPLOTLIB

pytest.importorskip("matplotlib", reason=NO_MATPLOTLIB)

PNG = b"\x89PNG"


def run_of(system: str, ms: float, *, counts: bool = True) -> Record:
    run = Run(
        "q1",
        system,
        0,
        Verdict("ok") if counts else Verdict("stalled", ("no result was seen",)),
        2_000,
        series=[Second(n, 100, ms, ms * (1 + n % 3 / 4)) for n in range(14)],
        curve=[ms * (0.5 + n / 100) for n in range(101)],
    )
    return Measured(Cell("q1"), run)


def test_latency_over_time_and_its_spread_are_drawn(tmp_path: Path) -> None:
    plan = plan_of(QUERY_SETS["nexmark"], quick=True, queries=("q1", "q3"))
    runs = [run_of("default", 600), run_of("tuned", 400), run_of("penstock", 0, counts=False)]
    draw(plan, runs, [], tmp_path / "latency.png")
    assert (tmp_path / "latency.png").read_bytes().startswith(PNG)
