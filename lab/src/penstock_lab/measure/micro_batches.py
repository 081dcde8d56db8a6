"""Worker of the floor suite: the cost of one stateful micro-batch, on stock Spark or on Penstock.

Both run the same query over the same numbers with state in RocksDB and its change log. `spark`
reads Spark's own generator and writes nowhere, which is the least a batch can cost; `penstock`
reads the log and commits to it, all else as a session has it. Both answers are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client, MarkerLine
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug, TryAgain
from penstock.observe.batch_ledger import BatchSteps
from penstock.settings.switches import SWITCHES
from penstock_lab.experiment.phases import Batch, batch_of, timing
from penstock_lab.experiment.systems import FORMAT, PROVIDER, SAME_JVM, TUNED_STORE
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.percentiles import median

MASTER = "local[2]"
ROWS = 5_000
KEYS = 20_000
PARTITIONS = 2
SPARE_BATCHES = 5
PAUSE_S = 0.25
CONF = {
    **TUNED_STORE,
    **FORMAT,
    **SAME_JVM,
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
INPUT = "numbers"
OUTPUT = "counts"


class Run(msgspec.Struct, frozen=True):
    """The batches of a run: how many, and how long they may take together."""

    warm_up: int
    batches: int
    timeout_s: float

    @property
    def total(self) -> int:
        return self.warm_up + self.batches + SPARE_BATCHES


def main(job: Job) -> dict[str, Any]:
    run = msgspec.convert(job.options, Run)
    measure: Callable[[Run, Path], dict[str, Any]] = {
        "spark": on_spark,
        "spark+switches": on_switched_spark,
        "penstock": on_penstock,
    }[job.system]
    return measure(run, job.path)


def on_switched_spark(run: Run, folder: Path) -> dict[str, Any]:
    """Spark without the jar, with the settings of its own that our sessions make."""
    switches = {switch.name: switch.value for switch in SWITCHES if switch.scope != "new JVM"}
    return on_spark(run, folder, switches)


def on_spark(
    run: Run, folder: Path, conf: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    builder = SparkSession.builder.master(MASTER).appName("floor")
    for key, value in {**conf, **CONF, **PROVIDER}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        numbers = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", ROWS)
            .option("numPartitions", PARTITIONS)
            .load()
        )
        query = _start(counted(numbers), folder, "noop", None)
        batches = wait_for(query, run)
        check_state(spark, folder, batches)
        return _answer(run, batches)
    finally:
        spark.stop()


def on_penstock(run: Run, folder: Path) -> dict[str, Any]:
    spark = penstock.session(MASTER, data=folder / "data", app_name="floor", conf=CONF)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(folder / "data")
        if left is None:
            raise no_server(folder / "data")
        client = Client(left.url, left.token, left.ca)
        fill(client, run.total)
        client.create(OUTPUT, "key bigint, count bigint", substreams=PARTITIONS, key="key")
        numbers = spark.readStream.format("penstock").option("maxRowsPerTrigger", ROWS).load(INPUT)
        query = _start(counted(numbers), folder, "penstock", OUTPUT)
        ledgers: list[BatchSteps] = []
        batches = wait_for(query, run, lambda: ledgers.extend(penstock.batch_steps(query)))
        check_state(spark, folder, batches)
        check_output(client.read(OUTPUT), batches)
        ends = batch_ends_ms(query)
        return {
            **_answer(run, batches),
            **ledger_figures([ledger for ledger in ledgers if ledger.batch >= run.warm_up]),
            "visible_ms_p50": visible_after_ms(client.markers(str(query.id)), ends, run.warm_up),
        }
    finally:
        spark.stop()


def fill(client: Client, batches: int) -> None:
    """Put the generator's numbers into the log, one commit for each batch to come."""
    client.create(INPUT, "timestamp timestamp, value bigint", substreams=PARTITIONS, key="value")
    for batch in range(batches):
        value = np.arange(batch * ROWS, (batch + 1) * ROWS, dtype=np.int64)
        stamp = pa.array(np.full(ROWS, batch * 1_000_000)).cast(pa.timestamp("us", "UTC"))
        client.append(INPUT, pa.table({"timestamp": stamp, "value": pa.array(value)}))


def counted(numbers: DataFrame) -> DataFrame:
    return numbers.groupBy((f.col("value") % KEYS).alias("key")).count()


def _start(counts: DataFrame, folder: Path, sink: str, stream: str | None) -> StreamingQuery:
    return (
        counts.writeStream.format(sink)
        .outputMode("update")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(stream)
    )


def ledger_figures(ledgers: Sequence[BatchSteps]) -> dict[str, Any]:
    """Steps of the measured batches and what they explain, for the result file."""
    return {
        "explained": median([ledger.explained for ledger in ledgers]),
        "requests": median([ledger.counters["requests"] for ledger in ledgers]),
        "wall_ms": step_medians([ledger.wall_ms for ledger in ledgers]),
        "task_ms": step_medians([ledger.task_ms for ledger in ledgers]),
        "counters": step_medians([ledger.counters for ledger in ledgers]),
    }


def step_medians(batches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of every step over the batches that have it."""
    steps = dict.fromkeys(step for batch in batches for step in batch)
    return {step: median([b[step] for b in batches if step in b]) or 0.0 for step in steps}


def batch_ends_ms(query: StreamingQuery) -> dict[int, float]:
    """The moment at which each reported batch was over for Spark."""
    return {
        int(progress["batchId"]): datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000
        + int(progress["durationMs"]["triggerExecution"])
        for progress in query.recentProgress
    }


def visible_after_ms(
    markers: Sequence[MarkerLine], ends: Mapping[int, float], first: int
) -> float | None:
    """The median time from the end of a batch to its marker, from batch `first` on."""
    return median(
        [
            max(0.0, marker.arrived_at_ms - ends[marker.batch])
            for marker in markers
            if marker.batch >= first and marker.batch in ends
        ]
    )


def wait_for(
    query: StreamingQuery,
    run: Run,
    before_stop: Callable[[], None] = lambda: None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Batch]:
    """The batches reported once there are enough of them; the query is stopped by then."""
    until = clock.monotonic_s() + run.timeout_s
    while clock.monotonic_s() < until and query.isActive:
        last = query.lastProgress
        if last is not None and int(last["batchId"]) + 1 >= run.total:
            break
        clock.sleep(PAUSE_S)
    failed = query.exception()
    batches = [batch_of(progress) for progress in query.recentProgress]
    before_stop()
    query.stop()
    if failed is not None or len(batches) < run.total:
        raise TryAgain(
            f"{len(batches)} of {run.total} batches were done in {run.timeout_s:g} s ({failed})",
            code="too_few_batches",
        )
    return batches


def expected_counts(rows: int) -> Any:
    """The count of each key among the numbers below `rows`."""
    return rows // KEYS + (np.arange(KEYS) < rows % KEYS)


def check_state(spark: SparkSession, folder: Path, batches: list[Batch]) -> None:
    """The state store after the last reported batch holds the right count for every key."""
    last = max(batch.batch for batch in batches)
    state = (
        spark.read.format("statestore")
        .option("batchId", last)
        .load(str(folder / "checkpoint"))
        .select("key.*", "value.*")
        .toDF("key", "count")
        .toArrow()
    )
    _check("the state store", state, (last + 1) * ROWS)


def check_output(output: pa.Table, batches: list[Batch]) -> None:
    """A reader of the output stream who keeps the largest count per key holds the right ones."""
    view = output.group_by("key").aggregate([("count", "max")]).rename_columns(["key", "count"])
    # The query may have committed more than it had reported when it was stopped.
    total = max(int(np.sum(view["count"].to_numpy())), sum(batch.rows for batch in batches))
    _check("the output stream", view, total)


def _check(where: str, answer: pa.Table, rows: int) -> None:
    counts = np.zeros(KEYS, np.int64)
    counts[answer["key"].to_numpy()] = answer["count"].to_numpy()
    wrong = np.flatnonzero(counts != expected_counts(rows))
    if len(wrong):
        key = int(wrong[0])
        raise Bug(
            f"{where} has wrong counts for {len(wrong)} of {KEYS} keys after {rows} rows; key "
            f"{key} has {counts[key]}, not {expected_counts(rows)[key]}",
            code="wrong_answer",
        )


def _answer(run: Run, batches: list[Batch]) -> dict[str, Any]:
    return dict(msgspec.to_builtins(timing(batches, ROWS, run.warm_up, run.batches)))


if __name__ == "__main__":
    serve(main)
