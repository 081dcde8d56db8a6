"""The queries by name, and what each says of itself."""

from __future__ import annotations

import pytest

from penstock.errors import BadCall
from penstock.model.ddl import parse_ddl
from penstock_lab.oracle.answers import EXPECTED, TRUTHS
from penstock_lab.queries import ALL, PAPER, named


@pytest.mark.parametrize("name", [*ALL, *PAPER])
def test_a_query_says_what_it_writes_and_the_last_column_is_the_send_time(name: str) -> None:
    query = named(name)
    assert query.name == name
    assert query.stages[-1].name == name
    for stage in query.stages:
        columns = parse_ddl(stage.columns).names
        assert columns[-1] == "sent_at"
        assert set(stage.route) <= set(columns)
        assert {watermark.stream for watermark in stage.watermarks} <= set(stage.reads)


@pytest.mark.parametrize("name", [*ALL, *PAPER])
def test_a_query_has_an_oracle_for_every_stage(name: str) -> None:
    query = named(name)
    stages = {stage.name for stage in query.stages} - {name} | {query.family}
    assert stages <= set(EXPECTED)
    assert (query.family in TRUTHS) == (len(query.stages) > 1)


def test_an_unknown_name_gets_the_list() -> None:
    with pytest.raises(BadCall, match="there is no query q99; there are q1, q2"):
        named("q99")


def test_an_unknown_parameter_is_named() -> None:
    with pytest.raises(BadCall, match="q1 does not take window"):
        named("q1", window=3)


def test_windows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(BadCall, match="cannot slide by 31 s"):
        named("lr_join_30_1", slide_s=31)


def test_an_unknown_stage_gets_the_list() -> None:
    with pytest.raises(BadCall, match="q4 has no stage q5; it has q4_changes, q4"):
        named("q4").stage("q5")


def test_the_inputs_are_what_no_stage_makes() -> None:
    assert named("q4").inputs == ("auctions", "bids")
