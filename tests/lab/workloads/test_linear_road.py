"""Linear Road: how vehicles move, and what slows them down."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall
from penstock_lab.workloads.linear_road import (
    EXIT_LANE,
    POSITION_REPORTS,
    LinearRoad,
    LinearRoadOptions,
)
from support.ranges import COUNTS, FIRSTS, cut_in_two, fingerprint, whole

SMALL = LinearRoadOptions(rate=100, vehicles=12_000, highways=2)


@cache
def ten_minutes() -> pa.Table:
    return pa.Table.from_batches([LinearRoad(SMALL).events(0, 600 * 100)])


def values(name: str, rows: pa.Table | None = None) -> Any:
    column = (ten_minutes() if rows is None else rows).column(name)
    return column.to_numpy().astype(np.int64)


def consecutive() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """Pairs of reports that follow each other within one trip: which, the first, the second."""
    order = np.lexsort((values("timestamp"), values("vehicle")))
    columns = {name: values(name)[order] for name in ten_minutes().schema.names if name != "at"}
    same = columns["vehicle"][1:] == columns["vehicle"][:-1]
    same &= columns["lane"][:-1] != EXIT_LANE
    before = {name: column[:-1][same] for name, column in columns.items()}
    after = {name: column[1:][same] for name, column in columns.items()}
    return same, before, after


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), FIRSTS, COUNTS, st.integers(0, 300))
def test_a_range_is_the_same_however_it_is_cut(seed: int, first: int, count: int, at: int) -> None:
    events = LinearRoad(SMALL, seed).events
    assert cut_in_two(events, first, count, at).equals(whole(events, first, count))


def test_reports_made_once_can_be_made_again_by_later_versions() -> None:
    assert fingerprint(LinearRoad().events(100_000, 1_000)) == "82ce1d00320f"


def test_reports_come_at_the_rate_and_in_order_of_time() -> None:
    assert ten_minutes().schema == POSITION_REPORTS
    assert np.bincount(values("timestamp")).tolist() == [0] + [100] * 600
    assert np.all(np.diff(values("timestamp")) >= 0)
    at = ten_minutes().column("at").cast(pa.int64()).to_numpy()
    assert np.all(at == 1_436_918_400_000_000 + values("timestamp") * 1_000_000)


def test_a_vehicle_reports_every_thirty_seconds_until_it_leaves() -> None:
    _, before, after = consecutive()
    assert len(before["timestamp"]) > 40_000
    assert np.all(after["timestamp"] - before["timestamp"] == 30)
    in_a_round = values("vehicle")[values("timestamp") <= 30]
    assert len(np.unique(in_a_round)) == len(in_a_round) == SMALL.on_road


def test_a_vehicle_stays_on_its_road_and_moves_by_the_speed_it_reported() -> None:
    _, before, after = consecutive()
    assert np.all(before["highway"] == after["highway"])
    assert np.all(before["direction"] == after["direction"])
    forward = np.where(before["direction"] == 0, 1, -1)
    assert np.all((after["position"] - before["position"]) * forward == before["speed"] * 44)


def test_speeds_of_one_vehicle_go_together() -> None:
    _, before, after = consecutive()
    assert np.corrcoef(before["speed"], after["speed"])[0, 1] > 0.4


def test_values_stay_in_their_ranges() -> None:
    for name, low, high in (
        ("speed", 0, 75),
        ("highway", 0, 1),
        ("lane", 0, 4),
        ("direction", 0, 1),
        ("position", 0, 527_999),
        ("vehicle", 0, 11_999),
    ):
        assert values(name).min() >= low, name
        assert values(name).max() <= high, name
    assert set(np.unique(values("lane"))) == {0, 1, 2, 3, 4}
    assert abs(values("direction").mean() - 0.5) < 0.02


def test_some_segments_are_below_forty_and_most_are_not() -> None:
    road = values("highway") * 2 + values("direction")
    segment = road * 100 + values("position") // 5_280
    mean = np.bincount(segment, values("speed")) / np.maximum(np.bincount(segment), 1)
    seen = np.bincount(segment) > 0
    assert 0.1 < np.mean(mean[seen] < 40) < 0.4


def test_accidents_stop_vehicles_and_only_accidents_do() -> None:
    stopped = values("speed") == 0
    assert 0 < np.mean(stopped) < 0.01
    calm = LinearRoad(
        LinearRoadOptions(rate=100, vehicles=12_000, accident_s=0, slow_share=0)
    ).events(0, 60_000)
    assert values("speed", pa.Table.from_batches([calm])).min() >= 20


def test_vehicle_ids_recur_once_all_have_been_used() -> None:
    few = LinearRoad(LinearRoadOptions(rate=10, vehicles=600)).events(0, 10 * 3_600)
    vehicles = values("vehicle", pa.Table.from_batches([few]))
    assert len(np.unique(vehicles)) == 600


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"rate": 0}, "no traffic"),
        ({"vehicles": 29_999}, "give between 30000"),
        ({"trip_reports_max": 500}, "do not fit a road"),
        ({"trip_reports_min": 1}, "give 2 reports or more"),
    ],
)
def test_options_that_cannot_be_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(BadCall, match=says):
        LinearRoadOptions(**wrong)


def test_a_high_rate_has_as_many_vehicles_as_report() -> None:
    assert LinearRoadOptions.of_rate(1_000) == LinearRoadOptions(rate=1_000)
    assert LinearRoadOptions.of_rate(50_000).vehicles == 1_500_000
    assert LinearRoadOptions.of_rate(10, vehicles=600).vehicles == 600
