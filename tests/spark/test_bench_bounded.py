"""The bounded suite in short, on Spark: a fixed trigger and the policy of the query's windows."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.suites import bounded
from penstock_lab.suites.bounded.cells import plan_of

QUERY = "lr_join_30_5"
SMALL = msgspec.structs.replace(
    plan_of(quick=True, queries=(QUERY,), rate=100, seconds=12.0), warm_up_s=4.0
)


def test_a_policy_of_the_windows_has_shorter_batches_than_a_trigger_of_ten_seconds(
    tmp_path: Path,
) -> None:
    shown = io.StringIO()
    file, picture = tmp_path / "bounded.json", tmp_path / "bounded.png"
    outlet = Outlet(Console(file=shown, width=160), file, picture)
    assert run(bounded.SUITE, SMALL, tmp_path, lambda _: None, outlet), shown.getvalue()
    written = msgspec.json.decode(file.read_bytes())
    by_system = {record["system"]: record for record in written["runs"]}
    assert set(by_system) == {"static", "slide"}
    assert all(record["rows_checked"] > 0 for record in by_system.values())
    assert written["figures"]["headline.answers_wrong"] == 0
    if any(record["verdict"]["kind"] != "ok" for record in by_system.values()):
        pytest.skip("skipped, because the sender was late on a busy machine")
    # A row waits up to ten seconds for the trigger, and up to five for the slide.
    means = {system: record["mean_ms"] for system, record in by_system.items()}
    assert means["slide"] < means["static"]
    assert picture.stat().st_size > 1_000
