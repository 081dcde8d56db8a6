"""The cluster trace: the sample's skew, and what belongs to a job."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from penstock.errors import BadCall
from penstock_lab.workloads.cluster_trace import (
    SAMPLE,
    SAMPLE_JOBS,
    TASK_EVENTS,
    ClusterTrace,
    ClusterTraceOptions,
)
from support.ranges import COUNTS, FIRSTS, SEEDS, cut_in_two, fingerprint, whole

SAMPLE_ROWS = 16_385


@cache
def task_events() -> pa.Table:
    """As long as the sample, at ten times its rate."""
    trace = ClusterTrace(ClusterTraceOptions(rate=250))
    return pa.Table.from_batches([trace.events(0, 647 * 250)])


def asked(sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("events", task_events())
        return connection.sql(sql).fetchall()


@settings(max_examples=40, deadline=None)
@given(SEEDS, FIRSTS, COUNTS, COUNTS)
def test_a_range_is_the_same_however_it_is_cut(seed: int, first: int, count: int, at: int) -> None:
    events = ClusterTrace(seed=seed).events
    assert cut_in_two(events, first, count, at).equals(whole(events, first, count))


def test_events_made_once_can_be_made_again_by_later_versions() -> None:
    assert fingerprint(ClusterTrace().events(100_000, 1_000)) == "a051e5d49d92"


def test_the_table_of_the_sample_adds_up_to_the_sample() -> None:
    assert [sum(part.by_type) for part in SAMPLE] == [13_313, 590, 2_437, 45]
    by_type = [sum(part.by_type[number] for part in SAMPLE) for number in range(6)]
    assert by_type == [5_349, 5_306, 191, 80, 4_478, 981]
    assert SAMPLE_JOBS == 240
    assert all(sum(part.by_priority.values()) == part.jobs for part in SAMPLE)


def test_events_come_at_the_rate_and_in_order_of_time() -> None:
    assert task_events().schema == TASK_EVENTS
    timestamp = task_events().column("timestamp").to_numpy()
    assert np.bincount(timestamp).tolist() == [0] + [250] * 647
    at = task_events().column("at").cast(pa.int64()).to_numpy()
    assert np.all(at == 1_436_918_400_000_000 + timestamp * 1_000_000)


def test_categories_are_as_skewed_as_in_the_sample() -> None:
    shares = dict(asked("select category, count(*) / 161750 from events group by 1"))
    for category, part in enumerate(SAMPLE):
        assert abs(shares[category] - sum(part.by_type) / SAMPLE_ROWS) < 0.004


def test_event_types_are_as_frequent_as_in_the_sample() -> None:
    shares = dict(asked("select event_type, count(*) / 161750 from events group by 1"))
    for event_type in range(6):
        expected = sum(part.by_type[event_type] for part in SAMPLE) / SAMPLE_ROWS
        assert abs(shares[event_type] - expected) < 0.004


def test_there_are_240_jobs_in_647_seconds_and_a_few_make_most_events() -> None:
    jobs = [count for _, count in asked("select job, count(*) from events group by 1 order by 2")]
    assert len(jobs) == 240
    # In the sample the largest job has 18.9 % of the events, and the ten largest 87 %.
    assert abs(jobs[-1] / 161_750 - 0.189) < 0.01
    assert abs(sum(jobs[-10:]) / 161_750 - 0.87) < 0.03


def test_jobs_are_replaced_by_others_and_can_be_more() -> None:
    trace = ClusterTrace(ClusterTraceOptions(rate=250, jobs_scale=3))
    first = set(trace.events(0, 100_000).column("job").to_pylist())
    later = set(trace.events(647 * 250, 100_000).column("job").to_pylist())
    assert 600 < len(first) <= 720
    assert not first & later


def test_a_job_has_one_category_user_priority_and_request() -> None:
    for name in ("category", "user", "priority", "cpu", "ram", "disk", "constraints"):
        sql = f"select max(n) from (select count(distinct {name}) n from events group by job)"
        assert asked(sql) == [(1,)], name


def test_a_task_has_no_machine_until_it_is_placed() -> None:
    shares = dict(asked("select event_type, avg((machine = -1)::int) from events group by 1"))
    assert shares[0] == 1
    assert [shares[event_type] for event_type in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert abs(shares[5] - 0.716) < 0.02


def test_requests_are_of_the_sample_s_size() -> None:
    [(low, mean, high)] = asked("select min(cpu), avg(cpu), max(cpu) from events")
    assert low >= 0
    assert high <= 0.406
    # 0.0247 in the sample.
    assert abs(mean - 0.0247) < 0.003


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(BadCall, match="every count is 1 or more"):
        ClusterTraceOptions(jobs_scale=0)
