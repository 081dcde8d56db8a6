"""The oracle: silent over right answers, and loud over every kind of wrong one."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest

from penstock_lab.demo.oracle import (
    Commit,
    Question,
    Verdict,
    check_batches,
    check_nothing_else,
    check_view,
    materialised,
    plain,
)
from penstock_lab.demo.queries import AUCTION_TOTALS
from penstock_lab.workloads.demo_bids import Auctions, bids

TOTALS = AUCTION_TOTALS.question
BATCHES = 6
BATCH_ROWS = 300


def right_commits(question: Question = TOTALS) -> list[Commit]:
    """What a correct query would have committed, computed here in the plainest way."""
    commits = []
    seen: list[pa.Table] = []
    for batch in range(BATCHES):
        read = pa.Table.from_batches(
            [bids(Auctions(auctions=40), batch * BATCH_ROWS, BATCH_ROWS, sent_at_us=batch + 1)]
        )
        seen.append(plain(read))
        everything = pa.concat_tables(seen)
        touched = set(read["auction"].to_pylist())
        with duckdb.connect() as base:
            base.register("everything", everything)
            answers = base.sql(question.over("everything")).to_arrow_table()
        wrote = answers.filter(pa.array(key in touched for key in answers["auction"].to_pylist()))
        commits.append(Commit(batch, 100 + batch, read, wrote))
    return commits


def with_wrote(commits: list[Commit], batch: int, wrote: pa.Table) -> list[Commit]:
    return [replace(one, wrote=wrote) if one.batch == batch else one for one in commits]


def whole_input(commits: list[Commit]) -> pa.Table:
    return pa.concat_tables([commit.read for commit in commits])


def test_right_answers_pass_and_every_row_is_counted() -> None:
    commits = right_commits()
    verdict = check_batches(TOTALS, commits)
    assert verdict == Verdict(sum(commit.wrote.num_rows for commit in commits), 0, [])


def test_a_wrong_value_is_found_in_its_batch() -> None:
    commits = right_commits()
    wrote = commits[3].wrote
    totals = wrote["total"].to_pylist()
    planted = wrote.set_column(2, "total", pa.array([totals[0] + 1, *totals[1:]], pa.int64()))
    verdict = check_batches(TOTALS, with_wrote(commits, 3, planted))
    assert verdict.rows_different == 1
    assert {one.what for one in verdict.first} == {
        "expected but not committed",
        "committed but not expected",
    }
    assert str(verdict.first[0]).startswith("auction_totals, batch 3 (marker 103): expected but")


@pytest.mark.parametrize(
    "planted",
    [
        lambda wrote: wrote.slice(1),
        lambda wrote: pa.concat_tables([wrote, wrote.slice(0, 1)]),
        lambda wrote: wrote.slice(0, 0),
    ],
    ids=["a row is missing", "a row is there twice", "nothing was written"],
)
def test_missing_and_repeated_rows_are_found(planted) -> None:  # type: ignore[no-untyped-def]
    commits = right_commits()
    assert check_batches(TOTALS, with_wrote(commits, 2, planted(commits[2].wrote))).rows_different


def test_a_bid_counted_twice_is_found_in_every_later_answer_of_its_auction() -> None:
    commits = right_commits()
    doubled = pa.concat_tables([commits[0].read, commits[0].read.slice(0, 1)])
    planted = [replace(commits[0], read=doubled), *commits[1:]]
    verdict = check_batches(TOTALS, planted)
    auction = commits[0].read["auction"][0].as_py()
    later = sum(auction in commit.wrote["auction"].to_pylist() for commit in commits)
    assert verdict.rows_different == later >= 1


def test_only_the_first_differences_are_kept_but_all_are_counted() -> None:
    commits = right_commits()
    nothing = [replace(one, wrote=one.wrote.slice(0, 0)) for one in commits]
    verdict = check_batches(TOTALS, nothing)
    assert verdict.rows_different == sum(one.wrote.num_rows for one in commits)
    assert len(verdict.first) == 20


def test_the_view_holds_the_last_row_of_every_key() -> None:
    commits = right_commits()
    view = materialised(TOTALS, commits)
    assert check_view(TOTALS, whole_input(commits), view).rows_different == 0
    assert view.num_rows == len(set(whole_input(commits)["auction"].to_pylist()))


def test_a_view_that_lacks_the_last_batch_differs() -> None:
    commits = right_commits()
    verdict = check_view(TOTALS, whole_input(commits), materialised(TOTALS, commits[:-1]))
    assert verdict.rows_different > 0
    assert verdict.first[0].where == "final view"


def test_rows_in_the_stream_that_no_marker_names_are_found() -> None:
    commits = right_commits()
    output = pa.concat_tables([commit.wrote for commit in commits])
    assert check_nothing_else(TOTALS, commits, output).rows_different == 0
    stray = pa.concat_tables([output, output.slice(0, 2)])
    assert check_nothing_else(TOTALS, commits, stray).rows_different == 2
    assert check_nothing_else(TOTALS, [], output).rows_different == output.num_rows
