"""The commit suite in short, on Spark: every way to commit behind the query, beside Spark's own."""

from __future__ import annotations

import dataclasses
import io
from functools import partial
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from penstock_lab.experiment.checks import ComparedRows, with_oracle
from penstock_lab.experiment.plan import WarmUp
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.rig import Rig
from penstock_lab.experiment.run import run
from penstock_lab.suites import commit
from penstock_lab.suites.commit.cells import (
    BACK_TO_BACK,
    FILES,
    ZSTREAM,
    Cell,
    Group,
    Plan,
)
from penstock_lab.suites.commit.plans import plan_of
from penstock_lab.suites.commit.runs import conf_of

SYSTEMS = (FILES, "full")
CELL = Cell("lr_count_20_5", "local", BACK_TO_BACK, True, 500)
# The paper's policy has a trigger for its deadline, and state as Spark has it by default.
ZSTREAM_CELL = Cell("lr_count_20_5", "local", 2.0, False, 500)
WRONG, WRONG_CELL = ZSTREAM, ZSTREAM_CELL
CELLS = {
    **dict.fromkeys(SYSTEMS, CELL),
    ZSTREAM: ZSTREAM_CELL,
}
SMALL = msgspec.structs.replace(
    plan_of(quick=True),
    groups=(
        Group(SYSTEMS, (CELL,)),
        Group((ZSTREAM,), (ZSTREAM_CELL,)),
    ),
    repeats=1,
    measure_s=4.0,
    measure_batches=3,
    first_warm_up=WarmUp(40.0, 5),
    growth=None,
    sustain=None,
    again_max=0,
)


def checked(*asked: object, system: str, planted: int) -> ComparedRows:
    """What the oracle says, and so many rows more that differ."""
    comparison = with_oracle(*asked)  # type: ignore[arg-type]
    assert comparison.rows_checked
    # Hadoop keeps a checksum beside each file that it writes to a local disk.
    checksums = list(Path(str(asked[-1])).glob("checkpoints/*/offsets/.*.crc"))
    assert bool(checksums) is (system == ZSTREAM)
    assert comparison.rows_different == 0, comparison.first
    return msgspec.structs.replace(comparison, rows_different=planted)


def opened(plan: Plan, group: Group, system: str, folder: Path, *, wrong: str) -> Rig:
    check = partial(checked, system=system, planted=2 if system == wrong else 0)
    conf = conf_of(has_changelog=group.has_changelog)
    return Rig(system, folder, cores=plan.cores, check=check, conf=conf, tells_commits=True)


def test_a_short_run_of_every_way_to_commit_is_checked_and_a_planted_wrong_one_is_named(
    tmp_path: Path,
) -> None:
    steps_told: list[str] = []
    shown = io.StringIO()
    file, picture = tmp_path / "commit.json", tmp_path / "commit.png"
    runs = partial(commit.runs.runs, opening=partial(opened, wrong=WRONG))
    suite = dataclasses.replace(commit.SUITE, runs=runs)
    outlet = Outlet(Console(file=shown, width=160), file, picture)
    assert not run(suite, SMALL, tmp_path, steps_told.append, outlet)
    written = msgspec.json.decode(file.read_bytes())
    by_system = {record["system"]: record for record in written["runs"]}
    assert len(steps_told) == SMALL.steps == len(written["runs"]) == len(by_system)
    assert set(by_system) == {*CELLS}
    assert all(record["rows_checked"] > 0 for record in by_system.values())
    figures = written["figures"]
    assert figures["headline.answers_wrong"] == 1
    assert figures["headline.runs_failed"] == 0
    assert [s for s in CELLS if by_system[s]["verdict"]["kind"] == "wrong"] == [WRONG]
    assert f"{WRONG_CELL.name}.{WRONG}.batch_p50_ms" not in figures
    assert f"{WRONG_CELL.words}: {WRONG}, repeat 1: wrong: 2 of" in shown.getvalue()
    for system, record in by_system.items():
        if record["verdict"]["kind"] == "ok":
            assert_figures_are_the_runs(figures, CELLS[system], system, record)
            assert record["warm_up_batches"] >= 1
    both = [by_system[system] for system in (FILES, "full")]
    if all(record["verdict"]["kind"] == "ok" for record in both):
        theirs, ours = (record["latency"]["p99"] for record in both)
        ratio = figures["headline.event_p99_ratio_local_ablated"]
        assert ratio == pytest.approx(theirs / ours, abs=1e-3)
    assert picture.stat().st_size > 1_000
    steps = {system: set(record["steps"]) for system, record in by_system.items()}
    assert not steps[FILES], "Spark's own commit has no steps of ours"
    assert steps["full"] >= {"local write", "append state", "release", "marker", "copy"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["commit.json", "commit.png"]


def assert_figures_are_the_runs(
    figures: dict[str, float], cell: Cell, system: str, record: dict[str, object]
) -> None:
    """Of one repeat the median is that repeat; its batches are some of those Spark reported."""
    latency, batches = record["latency"], record["batches"]
    assert isinstance(latency, dict)
    assert isinstance(batches, dict)
    took = [ms for ms, rows in zip(batches["took_ms"], batches["rows"], strict=True) if rows]
    assert 0 < record["measured_batches"] <= len(took)  # type: ignore[operator]
    key = f"{cell.name}.{system}"
    assert figures[f"{key}.event_p50_ms"] == latency["p50"]
    assert figures[f"{key}.event_p99_ms"] == latency["p99"]
    assert figures[f"{key}.batch_p50_ms"] in took
    assert figures[f"{key}.batch_p50_ms"] <= figures[f"{key}.batch_p99_ms"] <= max(took)
    assert figures[f"{key}.rss_mb"] == pytest.approx(record["rss_mb"], abs=1e-3)
    assert (f"{key}.behind_batches" in figures) is (system == "full")
