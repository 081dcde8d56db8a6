"""The result file and its table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from penstock.errors import Bug
from penstock_lab.experiment.figures import Figure, Goal
from penstock_lab.experiment.result import result, write
from penstock_lab.experiment.table import show_figures, verdict

FAST = Figure("append_ms_p50", "ms", "an append", 2.5, (2.4, 2.5, 2.9), Goal("under", 3))
SLOW = Figure("fetch_mb_per_s", "MB/s", "a read", 150.0, (), Goal("over", 200))


def test_the_file_has_everything_a_stranger_needs(tmp_path: Path) -> None:
    path = tmp_path / "floor.json"
    write(result("floor", {"repeats": 3}, [{"system": "append"}], [FAST, SLOW]), path)
    read = json.loads(path.read_text())
    assert list(read) == ["suite", "machine", "versions", "settings", "runs", "figures"]
    assert read["figures"] == {"append_ms_p50": 2.5, "fetch_mb_per_s": 150.0}
    assert read["machine"]["cores"] >= 1
    assert {"python", "penstock", "pyspark"} <= set(read["versions"])


def test_two_figures_of_one_name_are_refused() -> None:
    with pytest.raises(Bug, match="twice"):
        result("floor", {}, [], [FAST, FAST])


@pytest.mark.parametrize(
    ("goal", "value", "met"),
    [
        (Goal("at most", 40), 40.0, True),
        (Goal("under", 40), 40.0, False),
        (Goal("over", 40), 40.0, False),
        (Goal("over", 40), 40.1, True),
    ],
)
def test_a_goal_means_what_it_says_at_its_bound(goal: Goal, value: float, met: bool) -> None:
    assert goal.is_met(value) is met


def test_the_table_shows_spread_and_goal_and_what_was_missed_on_a_narrow_terminal() -> None:
    console = Console(width=80)
    with console.capture() as said:
        show_figures(console, "floor", [FAST, SLOW])
    lines = said.get().splitlines()
    fast = next(line for line in lines if "append_ms_p50" in line)
    slow = next(line for line in lines if "fetch_mb_per_s" in line)
    assert fast.split() == [
        *("append_ms_p50", "2.5", "ms", "2.4", "to", "2.9", "under", "3", "met")
    ]
    assert slow.split()[-1] == "missed"
    assert "append_ms_p50: an append" in lines


def test_a_goal_that_not_every_repeat_meets_is_not_called_met() -> None:
    mixed = Figure("over_ms", "ms", "what is added", 18.0, (-50.0, 18.0, 74.0), Goal("at most", 40))
    assert verdict(mixed).plain == "met in 2 of 3"
