"""Worker of the columnar suite: batches of queries over sliding windows, planned in several ways.

`fill` writes the input once. `learn` runs one query long enough for planning to have tried every
path; what it has learned of this machine stays in the folder of the log. `paths` starts one session
and runs every case on every path in it, one query after the other over the same commits; all of
them must give the same answer, which for cases of small batches is the oracle's too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, TryAgain
from penstock.model.device_plans import QueryDevices
from penstock.observe.batch_ledger import BatchRecord
from penstock.settings.devices import DEVICES
from penstock.spark import jvm, server_process
from penstock_lab import oracle, queries
from penstock_lab.experiment.device_plans import PlannedBatches, planned_batches, ways_of
from penstock_lab.experiment.phases import Batch, batch_of, timing
from penstock_lab.experiment.systems import NOT_COUNTED, SAME_JVM
from penstock_lab.experiment.turns import rotated
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.feeding import Feed, OneStream, create_outputs
from penstock_lab.measure.window_cases import Case, streams_of
from penstock_lab.measure.worker_round_trips import RoundTrip, round_trip
from penstock_lab.percentiles import percentile
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
AUTO, CPU = "auto", "cpu"
PATH_CONF: Mapping[str, Mapping[str, str]] = {
    "spark": {DEVICES.name: "spark"},
    "panes": {DEVICES.name: "panes"},
    CPU: {DEVICES.name: "cpu"},
    AUTO: {},
}
"""Settings that force a path; `auto` is what a session has that sets nothing."""
TERMS = {"policy": "asap"}
"""Options of the source on every path. Batches of a query with a policy are planned where devices
are `auto`; the others have it too, so that nothing but the path differs."""
REPORTED_S = 20.0
PAUSE_S = 0.05


class Measurement(msgspec.Struct, frozen=True):
    """One case on one path."""

    ms_p50: float
    stage_ms_p50: float
    """Of the stage that reads the source: all that is below the first shuffle."""
    rows: int
    """Rows of the answer."""
    notes: tuple[str, ...]
    ways: dict[str, float] = {}
    """The share of the measured batches by the way that was planned for them; none: no plan."""


class Options(msgspec.Struct, frozen=True):
    """All cases, the rate of event time, and the rows of one commit."""

    cases: tuple[Case, ...]
    rate: int
    commit_rows: int
    data: str
    """The folder of the log."""
    paths: tuple[str, ...] = ()
    round_trips: Case | None = None
    """Batches of one row, for a worker by itself."""
    learning: Case | None = None
    """Batches from which planning learns what the paths take here."""
    repeat: int = 0


def main(job: Job) -> dict[str, Any]:
    options = msgspec.convert(job.options, Options)
    if job.system == "fill":
        return fill(options)
    with opened(options, job.path) as runs:
        return learned(options, runs) if job.system == "learn" else run_paths(options, runs)


def fill(options: Options) -> dict[str, Any]:
    """Write every stream that a case reads, as many commits as its largest case needs."""
    server = server_process.start(Path(options.data))
    learning = () if options.learning is None else (options.learning,)
    try:
        with Client(server.address.url, server.address.token) as client:
            for stream, rows in streams_of((*options.cases, *learning)).items():
                feed = Feed(client, [source_of(stream, options.rate)], options.commit_rows)
                feed.append(rows // options.commit_rows)
            if options.round_trips is not None:
                source = source_of(options.round_trips.stream, options.rate)
                Feed(client, [source], 1).append(options.round_trips.commits_rows)
            return {"rows": sum(client.describe(s).rows for s in streams_of(options.cases))}
    finally:
        server.stop()


def source_of(stream: str, rate: int) -> OneStream:
    if stream.startswith("tasks"):
        return OneStream(stream, "job", ClusterTrace(ClusterTraceOptions(rate=rate)))
    return OneStream(stream, "vehicle", LinearRoad(LinearRoadOptions.of_rate(rate)))


@contextmanager
def opened(options: Options, folder: Path) -> Iterator[Runs]:
    """A session on the log; with its end the server keeps what was learned of this machine."""
    data = Path(options.data)
    spark = penstock.session(MASTER, data=data, app_name="columnar", conf=CONF)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(data)
        if left is None:
            raise no_server(data)
        with Client(left.url, left.token, left.ca) as client:
            yield Runs(spark, client, folder)
    finally:
        spark.stop()


def learned(options: Options, runs: Runs) -> dict[str, Any]:
    """A long run that is planned: batches, probes and ways that the last of them took."""
    planned = None if options.learning is None else runs.learn(options.learning)
    return {"planned": msgspec.to_builtins(planned)}


def run_paths(options: Options, runs: Runs) -> dict[str, Any]:
    # The first query of a session runs on code that is not compiled yet.
    runs.run(options.cases[0], options.paths[0])
    cases = {
        case.name: measured(runs, case, rotated(options.paths, options.repeat + place))
        for place, case in enumerate(options.cases)
    }
    trip = None
    if options.round_trips is not None and CPU in options.paths:
        trip = runs.round_trip(options.round_trips)
    return {"cases": msgspec.to_builtins(cases), "round_trip": msgspec.to_builtins(trip)}


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


class Ran(NamedTuple):
    """One run of a case, as Spark and the plug-in have reported it."""

    query_id: str
    streams: dict[str, str]
    output: str
    records: list[BatchRecord]
    batches: list[Batch]
    notes: tuple[str, ...]
    devices: QueryDevices | None


class Runs:
    """Queries run one after the other in one session, each with a stream and folder of its own."""

    def __init__(self, spark: SparkSession, client: Client, folder: Path) -> None:
        self._spark, self._client, self._folder = spark, client, folder
        self._done = 0

    def run(self, case: Case, path: str) -> tuple[Measurement, pa.Table]:
        """The times of a case on a path, and its answer."""
        ran = self._ran(case, path)
        if case.is_small:
            stage = case.query.stages[-1]
            checked = oracle.check(
                case.query, self._client, {stage.name: ran.query_id}, streams=ran.streams
            )
            if not checked.is_right:
                raise Bug(f"{case.name} on path {path}: {checked}", code="wrong_answer")
        whole = timing(ran.batches, case.rows, case.warm_up, case.batches)
        rows = self._client.read(ran.output)
        stage_ms = source_stage_ms(ran.records, case)
        ways = {} if ran.devices is None else ways_of(ran.devices.plans[: case.batches])
        return Measurement(whole.trigger_ms_p50, stage_ms, rows.num_rows, ran.notes, ways), rows

    def round_trip(self, case: Case) -> RoundTrip | None:
        """The way of one row to a worker that is warm, and back."""
        return round_trip(self._ran(case, CPU).records, case.warm_up)

    def learn(self, case: Case) -> PlannedBatches | None:
        """The planning of a case on `auto`."""
        with self._running(case, AUTO) as (running, _):
            devices = self._client.explain(str(running.id)).devices
        return None if devices is None else planned_batches(devices)

    def _ran(self, case: Case, path: str) -> Ran:
        with self._running(case, path) as (running, streams):
            records = reported(running, case.warm_up + case.batches)
            notes = tuple(
                note.text
                for note in penstock.plan_notes(running)
                if note.rule in ("devices", "panes")
            )
            batches = [batch_of(progress) for progress in running.recentProgress]
            query_id = str(running.id)
            devices = self._client.explain(query_id).devices
        output = streams[case.query.stages[-1].name]
        return Ran(query_id, streams, output, records, batches, notes, devices)

    @contextmanager
    def _running(self, case: Case, path: str) -> Iterator[tuple[StreamingQuery, dict[str, str]]]:
        """The query when all its input is processed, and the names of its streams."""
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
                options=TERMS,
            )
        try:
            running.processAllAvailable()
            yield running, streams
        finally:
            running.stop()


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
