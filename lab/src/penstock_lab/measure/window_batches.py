"""Worker of the columnar suite: batches of queries over sliding windows, planned in several ways.

`fill` writes the input once. `paths` starts one session and runs every case on every path in it,
one query after the other over the same commits; all of them must give the same answer, which for
cases of small batches is the oracle's too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, TryAgain
from penstock.observe.batch_ledger import BatchRecord
from penstock.settings.plugin import WINDOWS
from penstock.spark import jvm, server_process
from penstock_lab import oracle, queries
from penstock_lab.experiment.phases import batch_of, timing
from penstock_lab.experiment.systems import NOT_COUNTED, SAME_JVM
from penstock_lab.experiment.turns import rotated
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.feeding import Feed, OneStream, create_outputs
from penstock_lab.percentiles import percentile
from penstock_lab.queries import Query
from penstock_lab.queries.cluster import cm_category, cm_job
from penstock_lab.queries.linear_road import lr_count, lr_speed
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock_lab.workloads.linear_road import LinearRoad, LinearRoadOptions

MASTER = "local[2]"
CONF = {
    **SAME_JVM,
    **NOT_COUNTED,
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
AUTO = "auto"
PATH_CONF: Mapping[str, Mapping[str, str]] = {
    "spark": {WINDOWS.name: "spark"},
    "panes": {WINDOWS.name: "panes"},
    AUTO: {},
}
"""Settings that force a path; `auto` is what a session has that sets nothing."""
FAMILIES = {
    "cm_category": cm_category.query,
    "cm_job": cm_job.query,
    "lr_speed": lr_speed.query,
    "lr_count": lr_count.query,
}
REPORTED_S = 20.0
PAUSE_S = 0.05


class Case(msgspec.Struct, frozen=True):
    """A query with one size of windows and of batches."""

    family: str
    range_s: int
    slide_s: int
    rows: int
    """Rows of a batch."""
    batches: int
    warm_up: int
    is_small: bool = False
    is_goal: bool = True

    @property
    def name(self) -> str:
        small = "_small" if self.is_small else ""
        return f"{self.family}_{self.range_s}_{self.slide_s}{small}"

    @property
    def query(self) -> Query:
        return FAMILIES[self.family](range_s=self.range_s, slide_s=self.slide_s)

    @property
    def stream(self) -> str:
        """The stream of the log that it reads, whole."""
        return self.query.inputs[0] + ("_small" if self.is_small else "")

    @property
    def commits_rows(self) -> int:
        return self.rows * (self.warm_up + self.batches)


class Measurement(msgspec.Struct, frozen=True):
    """One case on one path."""

    ms_p50: float
    stage_ms_p50: float
    """Of the stage that reads the source: all that is below the first shuffle."""
    rows: int
    """Rows of the answer."""
    notes: tuple[str, ...]


class Options(msgspec.Struct, frozen=True):
    """All cases, the rate of event time, and the rows of one commit."""

    cases: tuple[Case, ...]
    rate: int
    commit_rows: int
    data: str
    """The folder of the log."""
    paths: tuple[str, ...] = ()
    repeat: int = 0


def main(job: Job) -> dict[str, Any]:
    options = msgspec.convert(job.options, Options)
    if job.system == "fill":
        return fill(options)
    return run_paths(options, job.path)


def fill(options: Options) -> dict[str, Any]:
    """Write every stream that a case reads, as many commits as its largest case needs."""
    server = server_process.start(Path(options.data))
    try:
        with Client(server.address.url, server.address.token) as client:
            for stream, rows in streams_of(options.cases).items():
                feed = Feed(client, [source_of(stream, options.rate)], options.commit_rows)
                feed.append(rows // options.commit_rows)
            return {"rows": sum(client.describe(s).rows for s in streams_of(options.cases))}
    finally:
        server.stop()


def streams_of(cases: Sequence[Case]) -> dict[str, int]:
    """Streams to be written, each with its rows; all cases of a stream read it whole."""
    rows: dict[str, int] = {}
    for case in cases:
        if rows.setdefault(case.stream, case.commits_rows) != case.commits_rows:
            raise Bug(f"cases of {case.stream} need different numbers of rows", code="bug")
    return rows


def source_of(stream: str, rate: int) -> OneStream:
    if stream.startswith("tasks"):
        return OneStream(stream, "job", ClusterTrace(ClusterTraceOptions(rate=rate)))
    # Each of the vehicles that are on the road at once has one report in half a minute.
    default = LinearRoadOptions()
    vehicles = max(default.vehicles, rate * default.report_every_s)
    road = LinearRoadOptions(rate=rate, vehicles=vehicles)
    return OneStream(stream, "vehicle", LinearRoad(road))


def run_paths(options: Options, folder: Path) -> dict[str, Any]:
    data = Path(options.data)
    spark = penstock.session(MASTER, data=data, app_name="columnar", conf=CONF)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(data)
        if left is None:
            raise no_server(data)
        with Client(left.url, left.token, left.ca) as client:
            runs = Runs(spark, client, folder)
            # The first query of a session runs on code that is not compiled yet.
            runs.run(options.cases[0], options.paths[0])
            return {
                "cases": {
                    case.name: msgspec.to_builtins(
                        measured(runs, case, rotated(options.paths, options.repeat + place))
                    )
                    for place, case in enumerate(options.cases)
                }
            }
    finally:
        spark.stop()


def measured(runs: Runs, case: Case, paths: Sequence[str]) -> dict[str, Measurement]:
    """One case on every path in this order; raises Bug where two paths answer otherwise."""
    answers: dict[str, pa.Table] = {}
    by_path: dict[str, Measurement] = {}
    for path in paths:
        by_path[path], answers[path] = runs.run(case, path)
    first, *others = answers
    for path in others:
        check_same(case.name, first, answers[first], path, answers[path])
    return by_path


def check_same(
    case: str, first_path: str, answer: pa.Table, other_path: str, other_answer: pa.Table
) -> None:
    """Raise Bug unless both paths gave the same rows, in whatever order."""
    if not ordered(answer).equals(ordered(other_answer)):
        raise Bug(
            f"{case} has {answer.num_rows} rows on path {first_path} and {other_answer.num_rows} "
            f"others on path {other_path}",
            code="wrong_answer",
        )


def ordered(rows: pa.Table) -> pa.Table:
    return rows.combine_chunks().sort_by([(name, "ascending") for name in rows.column_names])


class Runs:
    """Queries run one after the other in one session, each with a stream and folder of its own."""

    def __init__(self, spark: SparkSession, client: Client, folder: Path) -> None:
        self._spark, self._client, self._folder = spark, client, folder
        self._done = 0

    def run(self, case: Case, path: str) -> tuple[Measurement, pa.Table]:
        """The times of a case on a path, and its answer."""
        self._done += 1
        query, output = case.query, f"{case.name}_{path}_{self._folder.name}_{self._done}"
        stage = query.stages[-1]
        streams = {query.inputs[0]: case.stream, stage.name: output}
        create_outputs(self._client, query, streams)
        with settings(self._spark, PATH_CONF[path]):
            running = queries.start_stage(
                self._spark,
                stage,
                self._folder / str(self._done),
                streams=streams,
                rows_max=case.rows,
            )
        try:
            running.processAllAvailable()
            records = reported(running, case.warm_up + case.batches)
            notes = tuple(
                note.text for note in penstock.plan_notes(running) if note.rule == "panes"
            )
            batches = [batch_of(progress) for progress in running.recentProgress]
        finally:
            running.stop()
        if case.is_small:
            checked = oracle.check(
                query, self._client, {stage.name: str(running.id)}, streams=streams
            )
            if not checked.is_right:
                raise Bug(f"{case.name} on path {path}: {checked}", code="wrong_answer")
        whole = timing(batches, case.rows, case.warm_up, case.batches)
        rows = self._client.read(output)
        stage_ms = source_stage_ms(records, case)
        return Measurement(whole.trigger_ms_p50, stage_ms, rows.num_rows, notes), rows


@contextmanager
def settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """The session with these settings, which a query that is started takes over for good."""
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            spark.conf.unset(key)


def reported(running: StreamingQuery, count: int, clock: Clock = SYSTEM_CLOCK) -> list[BatchRecord]:
    """Records of the query's batches; Spark tells its listeners on a thread of their own."""
    until = clock.monotonic_s() + REPORTED_S
    while True:
        records = msgspec.json.decode(jvm.batch_records(str(running.id)), type=list[BatchRecord])
        if len(records) >= count:
            return records
        if clock.monotonic_s() > until:
            raise TryAgain(
                f"{len(records)} of {count} batches were reported", code="too_few_batches"
            )
        clock.sleep(PAUSE_S)


def source_stage_ms(records: Sequence[BatchRecord], case: Case) -> float:
    """The median time of the first stage over the measured batches."""
    full = [record for record in records if record.progress.num_input_rows == case.rows]
    firsts = [
        min(record.stages, key=lambda stage: stage.id)
        for record in full[case.warm_up : case.warm_up + case.batches]
        if record.stages
    ]
    return percentile([stage.completed_ms - stage.submitted_ms for stage in firsts], 50) or 0.0


if __name__ == "__main__":
    serve(main)
