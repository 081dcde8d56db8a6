"""Rows later than the watermark allows: Spark drops them, and the oracle knows which it drops.

event time of a commit   0  8 16 24 32 …        one row in four of it comes five commits later,
read in batch            0  1  2  3  4 …        when its window has been closed or its state dropped
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock_lab import oracle, queries
from penstock_lab.measure.feeding import Feed, NexmarkSource, OneStream, create_outputs
from penstock_lab.oracle import Checked, committed
from penstock_lab.oracle.watermarks import Marked, Progress, progress
from penstock_lab.queries import Query, Stage, Watermark
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock_lab.workloads.linear_road import LinearRoad, LinearRoadOptions
from penstock_lab.workloads.nexmark import Nexmark, NexmarkOptions
from support.late_rows import LateRows

FINISH_S = 600
COMMITS, EVENTS, LATE_BY = 10, 800, 5
ROADS = LinearRoadOptions(rate=50, report_every_s=10, vehicles=1_000)
SOURCES = tuple(
    LateRows(source, LATE_BY)
    for source in (
        NexmarkSource(Nexmark(NexmarkOptions(rate=100))),
        OneStream("reports", "vehicle", LinearRoad(ROADS)),
        OneStream("tasks", "job", ClusterTrace(ClusterTraceOptions(rate=50))),
    )
)
NAMES = (
    *("q4", "q5", "q6", "q7", "q8"),
    *("lr_join_30_5", "lr_speed_30_10", "lr_count_20_5", "cm_category_60_10", "cm_job_60_5"),
)


@dataclass(frozen=True)
class Run:
    client: Client
    queries: Mapping[str, Query]
    streams: Mapping[str, str]
    ids: Mapping[str, str]

    def check(self, name: str) -> Checked:
        return oracle.check(self.queries[name], self.client, self.ids, streams=self.streams)


class Renamed:
    """Streams of this file's own in a log that other tests use too."""

    def __init__(self, source: LateRows) -> None:
        self._source = source

    @property
    def keys(self) -> Mapping[str, str]:
        return {f"late_{name}": key for name, key in self._source.keys.items()}

    def commit(self, first: int, count: int) -> dict[str, pa.RecordBatch]:
        rows = self._source.commit(first, count)
        return {f"late_{name}": batch for name, batch in rows.items()}


@pytest.fixture(scope="module")
def run(spark: SparkSession, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Run:
    checkpoints = tmp_path_factory.mktemp("late")
    chosen = {name: queries.named(name) for name in NAMES}
    names = {name for query in chosen.values() for name in query.inputs}
    names |= {stage.name for query in chosen.values() for stage in query.stages}
    streams = {name: f"late_{name}" for name in names}
    Feed(client, [Renamed(source) for source in SOURCES], EVENTS).append(COMMITS)
    for query in chosen.values():
        create_outputs(client, query, streams)
    running: dict[str, StreamingQuery] = {}
    for number in range(2):
        of_this_turn = [q.stages[number] for q in chosen.values() if len(q.stages) > number]
        for stage in of_this_turn:
            running[stage.name] = queries.start_stage(
                spark, stage, checkpoints, streams=streams, rows_max=1, available_now=True
            )
        for stage in of_this_turn:
            assert running[stage.name].awaitTermination(FINISH_S)
    ids = {name: str(query.id) for name, query in running.items()}
    return Run(client, chosen, streams, ids)


def nothing_is_late(
    marked: Sequence[Marked],
    watermarks: Sequence[Watermark],
    newest_us: Sequence[Mapping[int, int]],
) -> list[Progress]:
    marked_batches = progress(marked, watermarks, newest_us)
    return [batch._replace(late_us=0) for batch in marked_batches]


def late_rows(run: Run, stage: Stage) -> int:
    past = committed.Committed(run.client, stage, run.ids[stage.name], run.streams, {})
    counted = [
        past.base.execute(
            f'select count(*) from {mark.stream} where "{mark.column}" <= _late_us'
        ).fetchall()[0][0]
        for mark in stage.watermarks
    ]
    past.close()
    return int(max(counted))


@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_agrees_on_rows_that_come_too_late(run: Run, name: str) -> None:
    comparison = run.check(name)
    assert comparison.is_right, str(comparison)
    assert comparison.rows > 0
    assert late_rows(run, run.queries[name].stages[0]) > 0


@pytest.mark.parametrize("name", NAMES)
def test_an_oracle_that_took_no_row_for_late_would_disagree(
    run: Run, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(committed, "progress", nothing_is_late)
    assert not run.check(name).is_right
