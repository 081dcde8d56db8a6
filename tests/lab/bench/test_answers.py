"""The suite of answers: what it covers, what it calls wrong, and what it leaves out aloud."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from penstock.client.address import Address
from penstock.errors import BadCall, TryAgain
from penstock_lab import queries
from penstock_lab.experiment.children import Engine
from penstock_lab.experiment.driver_commands import Command, Setup, Start
from penstock_lab.experiment.result import Outlet
from penstock_lab.experiment.run import run
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.turns import Tell
from penstock_lab.measure import query_groups as groups
from penstock_lab.measure.killed_driver import Answered, Size, Trial, unchecked
from penstock_lab.measure.query_groups import Group
from penstock_lab.suites import answers

NOWHERE = "redis://127.0.0.1:1/0"
RIGHT = Answered("q4", 130_000, 4, 27, 900, 0, 2)
LONGEST = f"{groups.REPLAY}.cm_category_60_tumbling"
LONG = Answered(LONGEST, 1_000_000, 19, 41, 9_999_999, 0, 2)
WRONG = Answered("q5", 130_000, 4, 27, 900, 12, 2, ("q5, batch 3 (marker 9): missing auction=7",))
FAILED = Answered("q6", 130_000, error="q6 has ended; Spark said: no more memory")


def plan(*names: str, samples: Path = Path("nowhere")) -> answers.Plan:
    return answers.plan_of(queries=names, quick=True, redis=NOWHERE, data=samples)


def suite_with(answer: answers.Answer) -> Suite[answers.Plan, Answered]:
    runs = partial(answers.runs, answer=answer)
    return dataclasses.replace(answers.SUITE, runs=runs, require=lambda plan: None)


def asked(groups: Sequence[Group]) -> list[str]:
    return [query.name for group in groups for query in group.asked]


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    folder = tmp_path / "lightsaber"
    folder.mkdir()
    (folder / "lrb-data-small-ht.txt").write_text("1 107 32 0 0 0 53320\n")
    (folder / "google-cluster-data.txt").write_text("1 2 3 4 1 6 0 8 0.5 0.1 0.1 0\n")
    return tmp_path


def test_every_query_is_in_it_and_over_recordings_too(samples: Path) -> None:
    whole = plan(samples=samples)
    groups, skipped = whole.groups, whole.skipped
    generated = [*queries.NEXMARK, *queries.LINEAR_ROAD, *queries.CLUSTER]
    recorded = [f"replay.{name}" for name in (*queries.LINEAR_ROAD, *queries.CLUSTER)]
    assert asked(groups) == [*generated, *recorded]
    assert {*generated, "ysb"} == set(queries.ALL)
    assert [part.subject for part in skipped] == ["ysb"]


def test_what_cannot_be_checked_is_named_with_the_reason() -> None:
    said = {part.subject: part.why for part in plan().skipped}
    assert "no Redis answers at 127.0.0.1:1" in said["ysb"]
    assert "PENSTOCK_TEST_DATA names the folder" in said["replay"]


def test_a_query_that_is_chosen_is_run_alone_and_misses_nothing_it_does_not_need() -> None:
    assert (asked(plan("Q18").groups), plan("Q18").skipped) == (["q18"], ())
    assert answers.steps(plan("q18")) == answers.QUICK.commits
    assert answers.steps(plan("q4")) == 2 * answers.QUICK.commits


def test_a_query_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(BadCall, match="no query q99; there is q1, q2"):
        plan("q99")


@pytest.mark.parametrize(("size", "events"), [(answers.QUICK, 120_000), (answers.FULL, 1_000_000)])
def test_a_run_is_as_large_as_promised(size: Size, events: int) -> None:
    assert size.commits >= 20
    assert size.commits * size.events >= events


def test_streams_of_two_groups_do_not_meet_in_one_log(samples: Path) -> None:
    group = groups.merged("all", groups.linear_road(), groups.cluster(), groups.recorded(samples))
    fed = [stream for source in group.sources for stream in source.keys]
    written = [each.stream(stage.name) for each in group.asked for stage in each.query.stages]
    assert len({*fed, *written}) == len(fed) + len(written)
    assert {each.stream(name) for each in group.asked for name in each.query.inputs} == set(fed)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, None),
        ({"batches": 19}, "19 batches, and 20 are needed"),
        ({"rows": 0}, "no row"),
        ({"batches_at_the_kill": 0}, "not killed in the middle"),
        ({"batches_at_the_kill": 27}, "not killed in the middle"),
        ({"instance": 1}, "not started again"),
    ],
)
def test_an_answer_that_was_hardly_put_to_the_test_does_not_pass(
    changed: dict[str, int], says: str | None
) -> None:
    reason = unchecked(msgspec.structs.replace(RIGHT, **changed), answers.QUICK)
    assert reason is None if says is None else says in str(reason)


def test_figures_are_named_by_query_and_wrong_ones_are_counted() -> None:
    by_name = {
        figure.name: figure for figure in answers.figures(plan("q4"), [RIGHT, LONG, WRONG, FAILED])
    }
    assert by_name["Q4.events"].value == 130_000
    assert by_name["Q4.batches"].value == 27
    assert by_name["Q4.rows"].value == 900
    assert by_name["Q4.different"].value == 0
    assert by_name[f"{LONGEST}.rows"].value == 9_999_999
    assert by_name["Q5.different"].value == 12
    assert "Q6.rows" not in by_name
    for name in ("headline.answers_wrong", "headline.queries_failed"):
        goal = by_name[name].goal
        assert by_name[name].value == 1
        assert goal is not None
        assert not goal.is_met(1)


def test_the_table_shows_all_of_it_on_a_narrow_terminal() -> None:
    said = io.StringIO()
    records = [RIGHT, LONG, WRONG, FAILED]
    skipped = (answers.Skipped("ysb", "there is no Redis"),)
    whole = dataclasses.replace(plan("q4"), skipped=skipped)
    console = Console(file=said, width=80)
    answers.show(console, whole, records, answers.figures(whole, records))
    text = said.getvalue()
    assert "…" not in text
    long = next(line for line in text.splitlines() if line.strip().startswith(LONGEST))
    assert long.split() == [LONGEST, "1,000,000", "41", "9,999,999", "0", "2"]
    assert "wrong: Q5: 12 of 900 rows differ" in text
    assert "q5, batch 3 (marker 9): missing auction=7" in text
    assert "failed: Q6: q6 has ended; Spark said: no more memory" in text
    assert "ysb: skipped, because there is no Redis" in text


@pytest.mark.parametrize(("answered", "is_right"), [(RIGHT, True), (WRONG, False), (FAILED, False)])
def test_a_wrong_or_unchecked_answer_makes_the_whole_suite_fail(
    tmp_path: Path, answered: Answered, is_right: bool
) -> None:

    def trying(group: Group, size: Size, folder: Path, tell: Tell) -> list[Answered]:
        assert folder.is_dir()
        return [answered]

    path = tmp_path / "answers.json"
    console = Console(file=io.StringIO(), width=80)
    was_right = run(suite_with(trying), plan("q4"), tmp_path, print, Outlet(console, path))
    assert was_right is is_right
    written = json.loads(path.read_text())
    assert list(written) == ["suite", "machine", "versions", "settings", "runs", "figures"]
    assert written["figures"]["headline.answers_wrong"] == (answered is WRONG)
    assert written["runs"][0]["query"] == answered.query
    assert [file.name for file in tmp_path.iterdir()] == ["answers.json"]


def test_what_was_checked_before_an_interrupt_is_written(
    tmp_path: Path,
) -> None:

    def interrupted(group: Group, size: Size, folder: Path, tell: Tell) -> list[Answered]:
        if group.name == "linearroad":
            raise KeyboardInterrupt
        return [RIGHT]

    path = tmp_path / "answers.json"
    console = Console(file=io.StringIO(), width=80)
    with pytest.raises(KeyboardInterrupt):
        run(suite_with(interrupted), plan(), tmp_path, print, Outlet(console, path))
    assert json.loads(path.read_text())["figures"]["Q4.rows"] == 900
    assert [file.name for file in tmp_path.iterdir()] == ["answers.json"]


class Broken(Engine):
    """A Spark process that is there and says that a query has ended."""

    def __init__(self, setup: Setup, address: Address | None) -> None:
        assert address is not None
        self.started: list[str] = []

    def wait_ready(self) -> None: ...

    def ask(self, command: Command, timeout_s: float) -> dict[str, Any]:
        if isinstance(command, Start):
            self.started.append(command.query)
            return {"ids": {command.query: f"id-of-{command.query}"}}
        raise TryAgain(f"{self.started[0]} has ended; Spark said: nothing", code="query_failed")

    def stop(self, *, at_once: bool = False) -> None: ...


def test_a_driver_that_fails_is_an_error_of_all_its_queries(tmp_path: Path) -> None:
    group = groups.nexmark().only(frozenset({"q1", "q2"}))
    with Trial(group, Size(4, 100), tmp_path, opening=Broken) as trial:
        answers_of_all = trial.run()
    assert [(answered.query, answered.error) for answered in answers_of_all] == [
        ("q1", "q1 has ended; Spark said: nothing"),
        ("q2", "q1 has ended; Spark said: nothing"),
    ]
    assert not any(answered.is_right for answered in answers_of_all)
