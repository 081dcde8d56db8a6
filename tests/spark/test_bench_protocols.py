"""The protocols suite in short. It needs no Spark, but processes and seconds as the others do."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.baselines.task_graph.reader import Seen
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.measure import task_graph_runs
from penstock_lab.measure.task_graph_answers import Checked, check
from penstock_lab.suites import protocols
from penstock_lab.workloads.load import Load

SMALL = msgspec.structs.replace(
    protocols.cells.plan_of(
        quick=True, queries=("q4",), intervals_ms=(20,), rate=500, log="embedded"
    ),
    repeats=1,
    measure_s=1.0,
    warm_up_s=0.3,
    quiet_s=0.3,
)


def test_a_short_run_of_every_protocol_is_right_and_written(tmp_path: Path) -> None:
    steps_told: list[str] = []
    file, picture = tmp_path / "p.json", tmp_path / "p.png"
    outlet = Outlet(Console(file=io.StringIO(), width=120), file, picture)
    assert run(protocols.SUITE, SMALL, tmp_path, steps_told.append, outlet)
    written = msgspec.json.decode(file.read_bytes())
    figures, runs = written["figures"], written["runs"]
    void = figures["headline.runs_void"]
    assert len(steps_told) == SMALL.steps == 4
    assert {record["system"] for record in runs} == set(SMALL.protocols)
    assert 4 <= len(runs) <= 4 + void, "only a run whose sender was late is made once more"
    assert all(record["level"] == "log" and record["rows_checked"] > 0 for record in runs)
    assert figures["headline.answers_wrong"] == figures["headline.runs_failed"] == 0
    counted = {r["system"]: r for r in runs if r["verdict"]["kind"] == "ok"}
    for protocol, record in counted.items():
        key = f"log.Q4.20ms.{protocol}"
        assert figures[f"{key}.p50_ms"] == record["latency"]["p50"] > 0
        assert figures[f"{key}.p99_ms"] == record["latency"]["p99"]
        # An interval of 20 ms asks for 50 commits a second, and no task commits more often.
        assert 0 < figures[f"{key}.commits_per_s"] == record["commits_per_s"] <= 51
    if {"marker", "transaction"} <= set(counted):
        theirs, ours = (counted[name]["latency"]["p50"] for name in ("transaction", "marker"))
        ratio = figures["headline.marker_vs_transaction_p50_min"]
        assert ratio == pytest.approx(theirs / ours, abs=1e-3)
    assert picture.stat().st_size > 1_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.json", "p.png"]


def test_a_planted_missing_row_is_a_wrong_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_its_second_row(graph: str, load: Load, seen: Sequence[Seen]) -> Checked:
        rows = [row for seen_rows in seen for row in seen_rows.rows]
        same = [row for row in rows if row[0] == rows[0][0]]
        kept = [
            Seen(seen_rows.at_us, [row for row in seen_rows.rows if row != same[1]])
            for seen_rows in seen
        ]
        return check(graph, load, kept)

    monkeypatch.setattr(task_graph_runs, "check", without_its_second_row)
    shown = io.StringIO()
    plan = msgspec.structs.replace(SMALL, protocols=("marker",), again_max=0)
    file = tmp_path / "p.json"
    outlet = Outlet(Console(file=shown, width=120), file)
    assert not run(protocols.SUITE, plan, tmp_path, lambda _: None, outlet)
    written = msgspec.json.decode(file.read_bytes())
    (record,) = written["runs"]
    assert record["verdict"]["kind"] == "wrong"
    assert record["rows_different"] == 1
    assert written["figures"]["headline.answers_wrong"] == 1
    assert "log.Q4.20ms.marker.p50_ms" not in written["figures"]
    assert "row 3 came after row 1" in shown.getvalue()
