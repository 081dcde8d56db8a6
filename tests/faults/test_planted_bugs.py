"""Bugs planted in the plug-in are found by the tests that kill it, or by the contract suite."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.planted_scala import (
    COMMIT_TOO_EARLY,
    CUT_ANEW,
    KEPT_AFTER_ABORT,
    MARKER_TOO_EARLY,
    NO_ROOM_FORGOTTEN,
    READ_AFTER_SHUT,
    SHUT_TOO_EARLY,
    STALE_TRUSTED,
    SUPERSEDED_COUNTED,
    VARIABLE,
    VOID_INSTALLED,
    WRITTEN_FORGOTTEN,
    build_planted_jar,
)
from support.servers.processes import ServerProcess, wait_until
from support.spark.commit_kills import AT, Stop, check_a_kill
from support.spark.kill_driver import marked
from support.spark.three_queries.run import ROWS, ThreeQueries, query_status, wait_until_standing
from support.suites import Suite, build

Plant = Callable[[str], None]


@pytest.fixture(scope="module")
def jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_planted_jar(tmp_path_factory.mktemp("planted"))


@pytest.fixture
def plant(jar: Path, monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Every process that is started from then on has the bug."""

    def named(bug: str) -> None:
        monkeypatch.setenv("PENSTOCK_JAR", str(jar))
        monkeypatch.setenv(VARIABLE, bug)

    return named


def test_a_marker_before_the_last_ack_is_found(
    server: ServerProcess, tmp_path: Path, plant: Plant
) -> None:
    def wait_for_the_marker(job: ThreeQueries, ids: dict[str, str]) -> None:
        wait_until("the batch is marked", lambda: marked(job.client, ids["totals"]) >= AT)

    plant(MARKER_TOO_EARLY)
    stop = Stop("before_state", {"totals": (2, 3)})
    # The batch that stands still, or the one after it, which was marked as early before the kill.
    with pytest.raises(AssertionError, match=rf"\('totals', ({AT}|{AT + 1})\)"):
        check_a_kill(server, tmp_path / "job", stop, wait_for_the_marker)


def test_a_commit_log_before_the_marker_is_found(
    server: ServerProcess, tmp_path: Path, plant: Plant
) -> None:
    plant(COMMIT_TOO_EARLY)
    stop = Stop("before_marker", {"totals": (3, 3)})
    with pytest.raises(AssertionError, match="totals"):
        check_a_kill(server, tmp_path / "job", stop)


def test_offsets_that_are_cut_anew_are_found(
    server: ServerProcess, tmp_path: Path, plant: Plant
) -> None:
    plant(CUT_ANEW)
    stop = Stop("before_commit", {"files": (4, 4)})
    with pytest.raises(AssertionError, match="files"):
        check_a_kill(server, tmp_path / "job", stop)


def test_a_local_file_that_is_trusted_after_its_run_is_found(
    server: ServerProcess, tmp_path: Path, plant: Plant
) -> None:
    """Two machines in turn: the first has a changelog of a batch that the second has cut anew."""
    plant(STALE_TRUSTED)
    job = ThreeQueries(server, tmp_path / "job")
    same: dict[str, Any] = {"queries": ["totals"], "version": "1"}

    def kill_before_release(batch: int, machine: int, computed: int) -> dict[str, str]:
        point = f"before_release@{batch}"
        driver = job.start(point, rows_per_batch=machine * ROWS, machine=machine, **same)
        wait_until_standing(driver, {"totals"})
        wait_until("it has computed", lambda: query_status(driver)["totals"]["batch"] >= computed)
        driver.kill()
        return {name: str(query["id"]) for name, query in query_status(driver).items()}

    kill_before_release(AT, machine=1, computed=AT)
    ids = kill_before_release(AT + 1, machine=2, computed=-1)
    job.finish(machine=1, **same)
    with pytest.raises(AssertionError):
        job.check_whole(ids)


def test_an_ack_of_a_superseded_write_that_is_counted_is_found(
    jar: Path, tmp_path: Path, plant: Plant
) -> None:
    plant(SUPERSEDED_COUNTED)
    case = "zombie:the_ack_of_a_write_that_was_superseded_does_not_count"
    error = error_of(f"ours-changelog:{case}", jar, tmp_path)
    assert "the batch waits for the write that counts" in error


@pytest.mark.parametrize(
    ("bug", "case", "words"),
    [
        (VOID_INSTALLED, "a_cache_answers_as_a_plain_map", "expected"),
        (KEPT_AFTER_ABORT, "a_cache_answers_as_a_plain_map", "expected"),
        (NO_ROOM_FORGOTTEN, "a_cache_answers_as_a_plain_map", "expected"),
        (WRITTEN_FORGOTTEN, "a_fetch_that_has_read_before", "expected"),
        (READ_AFTER_SHUT, "a_cache_answers_as_a_plain_map", "touched while it was closed"),
        (SHUT_TOO_EARLY, "shutting_waits", "the store is not shut while it is read"),
    ],
)
def test_a_cache_that_breaks_the_one_truth_is_found(
    jar: Path, tmp_path: Path, plant: Plant, bug: str, case: str, words: str
) -> None:
    plant(bug)
    assert words in error_of(f"ours-changelog:cache:{case}", jar, tmp_path)


def error_of(case: str, jar: Path, folder: Path) -> str:
    """The error of one case of the contract suite with the planted jar."""
    java, classes = build("--java"), build("--suite")
    planted = [
        str(jar) if Path(path).name == jar.name else path for path in classes.split(os.pathsep)
    ]
    (result,) = Suite([case], java, os.pathsep.join(planted), folder / "suite").results()
    return str(result["error"])
