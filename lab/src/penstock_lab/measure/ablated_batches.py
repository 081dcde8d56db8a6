"""Worker of the floor suite: ledgers of one query with every mechanism, and with all but one.

In one session the runs follow each other over the same commits, each with an output and a
checkpoint of its own; one more goes before them, and does not count, because its code is not
compiled yet. Every run's answer is checked: counts by counting, others by DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, TryAgain
from penstock.observe.batch_ledger import BatchSteps
from penstock_lab import oracle, queries
from penstock_lab.experiment.phases import Batch, batch_of, timing
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure import micro_batches
from penstock_lab.measure.feeding import Feed, OneStream, create_outputs
from penstock_lab.measure.mechanisms import query_conf_of, session_conf_of
from penstock_lab.measure.window_batches import settings
from penstock_lab.queries import Query
from penstock_lab.queries.cluster import cm_category
from penstock_lab.queries.linear_road import lr_join
from penstock_lab.queries.query import Stage
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock_lab.workloads.linear_road import LinearRoad, LinearRoadOptions

MASTER = micro_batches.MASTER
TASK_ROWS, REPORT_ROWS = 2_500, 1_000
SPARE_BATCHES = 2
REPORTED_S = 60.0
PAUSE_S = 0.05
FLOOR = "floor"


class Ablated(msgspec.Struct, frozen=True):
    """A query, the rows of its batches, and its input as it is written."""

    query: Query
    rows: int
    """Rows of a batch: of event time a second, so that the watermark moves in each."""
    fill: Callable[[Client, int], None]
    scans: int = 1
    """How often a batch reads them: twice in a join of a stream with itself."""


def _fed(source: Callable[[], OneStream], rows: int) -> Callable[[Client, int], None]:
    return lambda client, batches: Feed(client, [source()], rows).append(batches)


def _tasks() -> OneStream:
    return OneStream("tasks", "job", ClusterTrace(ClusterTraceOptions(rate=TASK_ROWS)))


def _reports() -> OneStream:
    return OneStream("reports", "vehicle", LinearRoad(LinearRoadOptions.of_rate(REPORT_ROWS)))


COUNTS = Stage(
    micro_batches.OUTPUT,
    (micro_batches.INPUT,),
    "key bigint, count bigint",
    lambda frames: micro_batches.counted(frames[micro_batches.INPUT]),
    mode="update",
    key=("key",),
)
QUERIES = {
    FLOOR: Ablated(Query(FLOOR, FLOOR, (COUNTS,)), micro_batches.ROWS, micro_batches.fill),
    "cm_category": Ablated(
        cm_category.query(range_s=60, slide_s=10), TASK_ROWS, _fed(_tasks, TASK_ROWS)
    ),
    "lr_join": Ablated(
        lr_join.query(range_s=30, slide_s=1), REPORT_ROWS, _fed(_reports, REPORT_ROWS), scans=2
    ),
}


class Options(msgspec.Struct, frozen=True):
    """The query, the runs of one session in their order, and their batches."""

    query: str
    variants: tuple[str, ...]
    warm_up: int
    batches: int

    @property
    def total(self) -> int:
        return self.warm_up + self.batches + SPARE_BATCHES


def main(job: Job) -> dict[str, Any]:
    options = msgspec.convert(job.options, Options)
    data = job.path / "data"
    spark = penstock.session(MASTER, data=data, app_name="ablated", conf=session_conf(options))
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(data)
        if left is None:
            raise no_server(data)
        with Client(left.url, left.token, left.ca) as client:
            QUERIES[options.query].fill(client, options.total)
            runs = Runs(spark, client, options, job.path)
            runs.run(options.variants[0])
            return {"variants": {name: runs.run(name) for name in options.variants}}
    finally:
        spark.stop()


def session_conf(options: Options) -> dict[str, str]:
    """Settings of the session; of mechanisms those that only its JVM can change."""
    return {**micro_batches.CONF, **session_conf_of(options.variants[0])}


class Runs:
    """Runs of a query one after the other in one session."""

    def __init__(self, spark: SparkSession, client: Client, options: Options, folder: Path) -> None:
        self._spark, self._client, self._options = spark, client, options
        self._folder = folder
        self._done = 0

    def run(self, variant: str) -> dict[str, Any]:
        """Times and ledger of the query with this mechanism changed."""
        self._done += 1
        options, ablated = self._options, QUERIES[self._options.query]
        stage = ablated.query.stages[-1]
        streams = {stage.name: f"{stage.name}_{self._done}"}
        create_outputs(self._client, ablated.query, streams)
        with settings(self._spark, query_conf_of(variant)):
            running = queries.start_stage(
                self._spark,
                stage,
                self._folder / str(self._done),
                streams=streams,
                rows_max=ablated.rows,
            )
        try:
            running.processAllAvailable()
            ledgers = reported(running, options.total)
            batches = [batch_of(progress) for progress in running.recentProgress]
        finally:
            running.stop()
        self._check(variant, str(running.id), streams, batches)
        rows_read = ablated.rows * ablated.scans
        times = timing(batches, rows_read, options.warm_up, options.batches)
        measured = [ledger for ledger in ledgers if ledger.rows == rows_read]
        return {
            **msgspec.to_builtins(times),
            **micro_batches.ledger_figures(
                measured[options.warm_up : options.warm_up + options.batches]
            ),
        }

    def _check(
        self, variant: str, query_id: str, streams: dict[str, str], batches: list[Batch]
    ) -> None:
        """Raise Bug unless the answer is the right one."""
        ablated = QUERIES[self._options.query]
        if ablated.query.name == FLOOR:
            micro_batches.check_output(self._client.read(streams[COUNTS.name]), batches)
            return
        stage = ablated.query.stages[-1]
        checked = oracle.check(ablated.query, self._client, {stage.name: query_id}, streams=streams)
        if not checked.is_right:
            raise Bug(f"{ablated.query.name}, {variant}: {checked}", code="wrong_answer")


def reported(running: StreamingQuery, count: int, clock: Clock = SYSTEM_CLOCK) -> list[BatchSteps]:
    """Ledgers of the query's batches; Spark tells its listeners on a thread of their own."""
    until = clock.monotonic_s() + REPORTED_S
    while len(ledgers := penstock.batch_steps(running)) < count:
        if clock.monotonic_s() > until:
            raise TryAgain(
                f"{len(ledgers)} of {count} batches were reported", code="too_few_batches"
            )
        clock.sleep(PAUSE_S)
    return ledgers


if __name__ == "__main__":
    serve(main)
