"""The recovery suite in short, on Spark: a driver and the server are killed, the answer checked."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
from rich.console import Console

from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.measure.recoveries import DRIVER_WARM, SERVER
from penstock_lab.suites.recovery import SUITE
from penstock_lab.suites.recovery.cells import BARE, plan_of

SMALL = msgspec.structs.replace(
    plan_of(quick=True, kills=(DRIVER_WARM, SERVER)),
    systems=(BARE,),
    repeats=1,
    rate=300,
    batches_between=3,
    auctions=1_500,
    fill_events=4_000,
)


def test_a_query_comes_back_after_kills_of_its_driver_and_of_the_server(tmp_path: Path) -> None:
    shown, file = io.StringIO(), tmp_path / "recovery.json"
    outlet = Outlet(Console(file=shown, width=140), file)
    assert run(SUITE, SMALL, tmp_path, lambda _: None, outlet), shown.getvalue()
    written = msgspec.json.decode(file.read_bytes())
    (recovered,) = written["runs"]
    assert recovered["error"] is None
    assert recovered["rows_checked"] > 3_000, "those of the fill are checked too"
    assert set(recovered["ms"]) == {DRIVER_WARM, SERVER}
    assert all(0 < ms < 120_000 for ms in recovered["ms"].values())
    assert written["figures"]["penstock-bare.server.ms"] == recovered["ms"][SERVER]
