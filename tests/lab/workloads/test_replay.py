"""Replay: recordings go round, and the samples are what they are said to be."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import BadCall, Damaged
from penstock_lab.workloads import replay
from penstock_lab.workloads.cluster_trace import SAMPLE, TASK_EVENTS
from penstock_lab.workloads.linear_road import POSITION_REPORTS
from penstock_lab.workloads.replay import (
    DATA_VARIABLE,
    LINEAR_ROAD_FILE,
    Replay,
    data_folder,
    missing,
    samples_folder,
)
from support.ranges import FIRSTS, column, cut_in_two, whole
from support.sources import ROOT

REPORTS = """\
1\t\t107\t32\t\t0\t0\t0\t53320
1\t\t109\t20\t\t0\t0\t0\t100644
3\t\t106\t28\t\t0\t0\t1\t137745
"""


def sample(file: Path) -> Path:
    """The path of a sample, or the test is skipped because there is none."""
    folder = samples_folder(data_folder(os.environ), ROOT)
    if not (folder / file).is_file():
        pytest.skip(f"skipped, because {DATA_VARIABLE} names no folder that holds {file}")
    return folder / file


@pytest.fixture(scope="module")
def road() -> Replay:
    return replay.linear_road(sample(replay.LINEAR_ROAD_FILE))


@pytest.fixture(scope="module")
def cluster() -> Replay:
    return replay.cluster_trace(sample(replay.CLUSTER_TRACE_FILE))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "reports.txt"
    path.write_text(REPORTS)
    return path


def small() -> Replay:
    rows = {
        "timestamp": [1, 1, 3],
        "vehicle": [107, 109, 106],
        "speed": [32, 20, 28],
        "highway": [0, 0, 0],
        "lane": [0, 0, 0],
        "direction": [0, 0, 1],
        "position": [53_320, 100_644, 137_745],
        "at": [1_000_000, 1_000_000, 3_000_000],
    }
    return Replay(pa.RecordBatch.from_pydict(rows, schema=POSITION_REPORTS), base_time_ms=0)


def asked(rows: pa.RecordBatch, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_batches([rows]))
        return connection.sql(sql).fetchall()


def test_a_file_is_read_whatever_blanks_part_its_numbers(recording: Path) -> None:
    assert replay.linear_road(recording, base_time_ms=0).events(0, 3).equals(small().events(0, 3))


def test_every_time_round_adds_the_last_timestamp() -> None:
    rows = small().events(0, 8)
    assert column(rows, "timestamp") == [1, 1, 3, 4, 4, 6, 7, 7]
    assert column(rows, "vehicle") == [107, 109, 106] * 2 + [107, 109]
    at = rows.column("at").cast(pa.int64()).to_pylist()
    assert at == [1_000_000 * second for second in (1, 1, 3, 4, 4, 6, 7, 7)]


@settings(max_examples=50, deadline=None)
@given(FIRSTS, st.integers(0, 20), st.integers(0, 20))
def test_a_range_is_the_same_however_it_is_cut(first: int, count: int, at: int) -> None:
    events = small().events
    assert cut_in_two(events, first, count, at).equals(whole(events, first, count))


def test_a_recording_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(BadCall, match="is not there; give the path"):
        replay.linear_road(tmp_path / "none.txt")


@pytest.mark.parametrize("text", ["1 2 3\n", "1 107 32 0 0 0 x\n", REPORTS + "4 1 1 0 0 0 5 6\n"])
def test_a_recording_of_another_shape_is_damaged(recording: Path, text: str) -> None:
    recording.write_text(text)
    with pytest.raises(Damaged, match="is not a recording of 7 numbers a line"):
        replay.linear_road(recording)


def test_a_recording_out_of_order_is_damaged(recording: Path) -> None:
    recording.write_text(REPORTS + "2 1 1 0 0 0 5\n")
    with pytest.raises(Damaged, match="not in order of time"):
        replay.linear_road(recording)


def test_an_empty_recording_is_refused() -> None:
    with pytest.raises(BadCall, match="no rows"):
        Replay(pa.RecordBatch.from_pylist([], schema=POSITION_REPORTS))


def test_the_environment_names_the_folder_or_none() -> None:
    assert data_folder({DATA_VARIABLE: "data"}) == Path("data")
    assert data_folder({}) is None


def test_samples_are_looked_for_beside_the_checkout_unless_a_folder_is_named(
    tmp_path: Path,
) -> None:
    assert samples_folder(Path("named"), tmp_path / "checkout") == Path("named")
    assert samples_folder(None, tmp_path / "checkout") == tmp_path / "shared" / "data"


def test_a_folder_without_a_sample_says_which_and_who_names_the_folder(tmp_path: Path) -> None:
    assert str(LINEAR_ROAD_FILE) in str(missing(tmp_path))
    assert DATA_VARIABLE in str(missing(tmp_path))
    (tmp_path / "lightsaber").mkdir()
    for file in (LINEAR_ROAD_FILE, replay.CLUSTER_TRACE_FILE):
        (tmp_path / file).write_text("")
    assert missing(tmp_path) is None


def test_the_linear_road_sample_is_as_described(road: Replay) -> None:
    rows = road.events(0, len(road))
    assert rows.schema == POSITION_REPORTS
    assert asked(
        rows,
        "select count(*), min(timestamp), max(timestamp), count(distinct vehicle),"
        " count(distinct highway), count(distinct (direction, position // 5280)) from rows",
    ) == [(16_384, 1, 520, 1_499, 1, 177)]
    assert max(Counter(column(rows, "timestamp")).values()) == 65
    assert road.events(len(road), 1).column("timestamp").to_pylist() == [521]


def test_the_linear_road_sample_is_130_seconds_four_times_over(road: Replay) -> None:
    quarter = len(road) // 4
    for part in range(1, 4):
        first, other = road.events(0, quarter), road.events(part * quarter, quarter)
        for name in ("vehicle", "speed", "lane", "direction", "position"):
            assert first.column(name).equals(other.column(name))


def test_vehicles_of_the_sample_report_every_30_seconds(road: Replay) -> None:
    rows = road.events(0, len(road) // 4)
    [(pairs, spaced)] = asked(
        rows,
        "select count(*), count(*) filter (timestamp - before = 30) from (select timestamp,"
        " lag(timestamp) over (partition by vehicle order by timestamp) as before from rows)"
        " where before is not null",
    )
    assert pairs == spaced == 2_597


def test_the_cluster_sample_is_as_described(cluster: Replay) -> None:
    rows = cluster.events(0, len(cluster))
    assert rows.schema == TASK_EVENTS
    assert asked(
        rows,
        "select count(*), min(timestamp), max(timestamp), count(distinct job) from rows",
    ) == [(16_385, 1, 647, 240)]
    categories = Counter(column(rows, "category"))
    assert [categories[n] for n in range(4)] == [13_313, 590, 2_437, 45]
    types = Counter(column(rows, "event_type"))
    assert [types[n] for n in range(6)] == [5_349, 5_306, 191, 80, 4_478, 981]


def test_the_generator_s_table_is_counted_from_the_sample(cluster: Replay) -> None:
    rows = cluster.events(0, len(cluster))
    for category, part in enumerate(SAMPLE):
        mine = f"from rows where category = {category}"
        types = dict(asked(rows, f"select event_type, count(*) {mine} group by 1"))
        assert tuple(types.get(number, 0) for number in range(6)) == part.by_type
        priorities = asked(rows, f"select priority, count(distinct job) {mine} group by 1")
        assert dict(priorities) == part.by_priority
        largest = asked(
            rows,
            "select count(*), count(distinct task), round(max(cpu), 3), round(max(ram), 3)"
            f" {mine} group by job order by 1 desc",
        )
        assert len(largest) == part.jobs
        for job, recorded_job in zip(part.large, largest, strict=False):
            assert np.allclose(job, recorded_job, atol=1e-6)
