"""Workers of the floor suite for the log alone: a durable append, and a read into Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.client.address import no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import Bug
from penstock.spark import server_process
from penstock_lab.experiment.worker import Job, serve
from penstock_lab.percentiles import percentile

ROW_BYTES = 1_000
APPEND_BYTES = 100_000
APPENDS = 200
APPENDS_WARM_UP = 20
ENTRY_BYTES = 256_000
STREAM = "rows"
DDL = "n bigint, payload binary"


def main(job: Job) -> dict[str, Any]:
    measure: Callable[[Job], dict[str, Any]] = {
        "append": append,
        "fill": fill,
        "fetch": fetch,
    }[job.system]
    return measure(job)


def rows(first: int, count: int) -> pa.Table:
    """Rows of about `ROW_BYTES` each that do not compress, numbered from `first`."""
    width = ROW_BYTES - 12
    noise = np.random.default_rng(first).bytes(width * count)
    payload = pa.array([noise[k * width : (k + 1) * width] for k in range(count)], pa.binary())
    return pa.table({"n": pa.array(np.arange(first, first + count)), "payload": payload})


def append(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """The time of one append after another, each durable when it returns."""
    server = server_process.start(job.path / "data")
    try:
        with Client(server.address.url, server.address.token) as client:
            client.create(STREAM, DDL, substreams=1)
            table = rows(0, APPEND_BYTES // ROW_BYTES)
            took_ms = []
            for _ in range(APPENDS_WARM_UP + APPENDS):
                began = clock.monotonic_s()
                client.append(STREAM, table)
                took_ms.append((clock.monotonic_s() - began) * 1000)
            rows_in_log = client.describe(STREAM).rows
    finally:
        server.stop()
    if rows_in_log != table.num_rows * len(took_ms):
        raise Bug(
            f"{rows_in_log} rows are in the log after {len(took_ms)} appends of {table.num_rows}",
            code="wrong_answer",
        )
    measured = took_ms[APPENDS_WARM_UP:]
    return {
        "append_ms_p50": percentile(measured, 50),
        "append_ms_p99": percentile(measured, 99),
        "appends": len(measured),
        "append_bytes": table.nbytes,
    }


def fill(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """Put `mb` megabytes into one substream, for the runs of `fetch` that follow."""
    server = server_process.start(job.path / "data")
    began = clock.monotonic_s()
    per_entry = ENTRY_BYTES // ROW_BYTES
    entries = int(job.options["mb"]) * 1_000_000 // ENTRY_BYTES
    try:
        with Client(server.address.url, server.address.token) as client:
            client.create(STREAM, DDL, substreams=1)
            for entry in range(entries):
                client.append(STREAM, rows(entry * per_entry, per_entry))
    finally:
        server.stop()
    return {"entries": entries, "seconds": clock.monotonic_s() - began}


def fetch(job: Job, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """The whole stream into Spark: once to warm up, once for the clock, once to check it."""
    spark = penstock.session(
        "local[2]", data=job.path / "data", app_name="fetch", conf={"spark.ui.enabled": "false"}
    )
    try:
        spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(job.path / "data")
        if left is None:
            raise no_server(job.path / "data")
        stream = Client(left.url, left.token, left.ca).describe(STREAM)
        _read_all(spark)
        began = clock.monotonic_s()
        _read_all(spark)
        took_s = clock.monotonic_s() - began
        _check(spark, stream.rows)
    finally:
        spark.stop()
    return {
        "fetch_mb_per_s": stream.bytes / 1e6 / took_s,
        "seconds": took_s,
        "bytes": stream.bytes,
        "rows": stream.rows,
    }


def _read_all(spark: SparkSession) -> None:
    whole = spark.read.format("penstock").load(STREAM)
    whole.write.format("noop").mode("overwrite").save()


def _check(spark: SparkSession, count: int) -> None:
    whole = spark.read.format("penstock").load(STREAM)
    sums = whole.agg(f.count("*"), f.sum("n"), f.sum(f.length("payload"))).collect()[0]
    expected = (count, count * (count - 1) // 2, count * (ROW_BYTES - 12))
    if tuple(sums) != expected:
        raise Bug(f"Spark read {tuple(sums)} of {expected} from the log", code="wrong_answer")


if __name__ == "__main__":
    serve(main)
