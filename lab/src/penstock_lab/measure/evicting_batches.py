"""Worker of the floor suite: a batch over large state of which nothing has expired.

The query is like Nexmark's fifth: rows per auction in sliding windows, in append mode as there. Two
copies of it run in one session over the same rows and differ in one setting: one makes Spark's scan
for eviction in every batch, the other leaves out what could remove nothing. They take their batches
in turns, so that a slow minute of the machine falls on both. State and scans are checked on both
sides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK
from penstock.errors import Bug, TryAgain
from penstock_lab.experiment.systems import SAME_JVM, TUNED_STORE
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.measure.micro_batches import PARTITIONS
from penstock_lab.percentiles import median

MASTER = "local[2]"
WINDOWS = 5
"""Sliding windows that each row is in."""
ROWS = 1_000
EVICTION_KEY = "spark.penstock.eviction"
SIDES = {"spark": {EVICTION_KEY: "spark"}, "ours": {EVICTION_KEY: "skip"}}
CONF = {
    **TUNED_STORE,
    **SAME_JVM,
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
LEDGERS_WITHIN_S = 30.0
PAUSE_S = 0.05


class Run(msgspec.Struct, frozen=True):
    """Number of auctions, and of batches of each side."""

    auctions: int
    warm_up: int
    batches: int


@dataclass
class Side:
    """One of the two queries and the batches that were measured of it."""

    name: str
    query: StreamingQuery
    stream: str
    checkpoint: str
    measured: list[int] = field(default_factory=list)


def main(job: Job) -> dict[str, Any]:
    run = msgspec.convert(job.options, Run)
    spark = penstock.session(MASTER, data=job.path / "data", app_name="eviction", conf=CONF)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(job.path / "data")
        if left is None:
            raise no_server(job.path / "data")
        client = Client(left.url, left.token, left.ca)
        sides = [start(spark, client, name, conf, job.path) for name, conf in SIDES.items()]
        for side in sides:
            client.append(side.stream, rows(0, run.auctions, run.auctions))
            side.query.processAllAvailable()
        for batch in range(run.warm_up + run.batches):
            for side in sides:
                client.append(side.stream, rows(batch * ROWS, ROWS, run.auctions))
                side.query.processAllAvailable()
        answer = {f"evict_{side.name}_ms_p50": batch_ms(side, run) for side in sides}
        for side in sides:
            check_scans(side)
            side.query.stop()
            check_state(spark, side, run)
        return answer
    finally:
        spark.stop()


def rows(first: int, count: int, auctions: int) -> pa.Table:
    """Rows of so many auctions one after the other, all in the same slide of the windows."""
    auction = np.arange(first, first + count, dtype=np.int64) % auctions
    at = pa.array(np.full(count, 1_000_000_000_000_000)).cast(pa.timestamp("us", "UTC"))
    return pa.table({"auction": pa.array(auction), "at": at})


def start(
    spark: SparkSession, client: Client, name: str, conf: Mapping[str, str], folder: Path
) -> Side:
    stream = f"bids_{name}"
    client.create(stream, "auction bigint, at timestamp", substreams=PARTITIONS, key="auction")
    for key, value in conf.items():
        spark.conf.set(key, value)
    window = f.window("at", f"{2 * WINDOWS} seconds", "2 seconds")
    checkpoint = str(folder / f"checkpoint-{name}")
    query = (
        spark.readStream.format("penstock")
        .load(stream)
        .withWatermark("at", "1 hour")
        .groupBy(window, "auction")
        .count()
        .writeStream.format("noop")
        .outputMode("append")
        .option("checkpointLocation", checkpoint)
        .start()
    )
    return Side(name, query, stream, checkpoint)


def batch_ms(side: Side, run: Run) -> float:
    """The median of the batches with rows, without the one that fills the state and the warm-up.

    The question how far a batch may read is held until its rows come, so it is no part of one.
    """
    with_rows = [p for p in side.query.recentProgress if p["numInputRows"]]
    measured = with_rows[1 + run.warm_up :]
    if len(measured) < run.batches:
        raise TryAgain(
            f"{len(measured)} of {run.batches} batches were measured; run the suite again",
            code="too_few_batches",
        )
    side.measured = [int(p["batchId"]) for p in measured]
    durations = [p["durationMs"] for p in measured]
    return median([float(d["triggerExecution"] - d["latestOffset"]) for d in durations]) or 0.0


def check_scans(side: Side) -> None:
    """Measured batches of ours made no scan; without the rule nothing is counted."""
    until = SYSTEM_CLOCK.monotonic_s() + LEDGERS_WITHIN_S
    ledgers = {each.batch: each for each in penstock.batch_steps(side.query)}
    while side.measured[-1] not in ledgers and SYSTEM_CLOCK.monotonic_s() < until:
        SYSTEM_CLOCK.sleep(PAUSE_S)
        ledgers = {each.batch: each for each in penstock.batch_steps(side.query)}
    expected = (0, PARTITIONS if side.name == "ours" else 0)
    for batch in side.measured:
        counters = ledgers[batch].counters
        counted = (counters["eviction scans"], counters["eviction scans skipped"])
        if counted != expected:
            raise Bug(
                f"batch {batch} of '{side.name}' made {counted[0]:g} scans for eviction and "
                f"skipped {counted[1]:g}, not {expected[0]} and {expected[1]}",
                code="wrong_answer",
            )


def check_state(spark: SparkSession, side: Side, run: Run) -> None:
    """Every window of every auction is there, and all rows are counted in their windows."""
    state = spark.read.format("statestore").load(side.checkpoint)
    keys, counted, most = state.agg(
        f.count("*"), f.sum("value.count"), f.max("value.count")
    ).collect()[0]
    later = ROWS * (run.warm_up + run.batches)
    expected = (
        WINDOWS * run.auctions,
        WINDOWS * (run.auctions + later),
        1 + -(-later // run.auctions),
    )
    if (keys, counted, most) != expected:
        raise Bug(
            f"the state of '{side.name}' has {keys} keys with {counted} rows, {most} at most, not "
            f"{expected[0]} with {expected[1]} and {expected[2]}",
            code="wrong_answer",
        )


if __name__ == "__main__":
    serve(main)
