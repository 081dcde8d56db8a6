"""State of a batch that is more than the log takes in one request, or in one entry."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from penstock.client import Client
from penstock.testing.nats_servers import NatsServers, nats_program
from support.servers.processes import ServerProcess
from support.skip_reasons import NO_NATS

URL = "spark.penstock.url"
SNAPSHOTS = "spark.penstock.commit.snapshots"
PARTITIONS = "spark.sql.shuffle.partitions"
KIB = 1 << 10
BOUNDS = {"entry_bytes_max": 64 * KIB, "request_bytes_max": 192 * KIB, "request_files_max": 3}
STORES = 8
"""Each has a change log and its checksum in every batch: more than fits into one request."""
PHASES = ((range(16), 16), (range(16, 96), 16), (range(96, 100), 1))
"""What each batch reads: so many keys, with so many KiB of state for each."""


@pytest.fixture(params=["embedded", "jetstream"])
def tight(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of a log that takes little at once: by its settings, or by its messages."""
    with ExitStack() as stack:
        options = [part for key, value in BOUNDS.items() for part in ("--set", f"{key}={value}")]
        if request.param == "jetstream":
            if nats_program() is None:
                pytest.skip(NO_NATS)
            payload_max = 2 * BOUNDS["entry_bytes_max"]
            small = stack.enter_context(
                NatsServers(tmp_path / "nats", count=1, payload_max=payload_max)
            )
            options = ["--log", small.url, "--set", "log_replicas=1"]
        server = ServerProcess(tmp_path / "server", *options)
        stack.callback(server.stop)
        yield server.start()


def texts(keys: range, kib: int) -> pa.Table:
    """One text of so many KiB for each key, of which lz4 makes no less."""
    made = [random.Random(key).randbytes(kib * KIB // 2).hex() for key in keys]
    return pa.table({"k": pa.array(keys, pa.int64()), "v": made})


def test_state_that_is_too_much_for_a_request_or_an_entry_is_committed(
    spark: SparkSession, tight: ServerProcess, fresh: Callable[[str], str], tmp_path: Path
) -> None:
    """First many small change logs, then some that no entry holds, which the location takes."""
    given, made = fresh("given"), fresh("made")
    client = Client(tight.url, tight.token)
    own = spark.newSession()
    for setting, value in ((URL, tight.url), (PARTITIONS, str(STORES)), (SNAPSHOTS, "log")):
        own.conf.set(setting, value)
    client.create(given, "k bigint, v string")
    longest = (
        own.readStream.format("penstock")
        .option("url", tight.url)
        .load(given)
        .groupBy("k")
        .agg(F.max("v").alias("v"))
        .select("k", F.length("v").alias("n"))
    )
    writer = longest.writeStream.format("penstock").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer = writer.option("url", tight.url)
    for keys, kib in PHASES:
        for key in keys:
            client.append(given, texts(range(key, key + 1), kib))
        query = writer.trigger(availableNow=True).start(made)
        query.awaitTermination(300)
        assert query.exception() is None
    rows = {row["k"]: row["n"] for row in client.read(made).to_pylist()}
    assert rows == {key: kib * KIB for keys, kib in PHASES for key in keys}
    small, large, after = (
        sum(file.path.endswith(".changelog") for file in marker.files)
        for marker in client.checkpoint(query.id).markers
    )
    assert small == after == STORES
    assert large < STORES, "what no entry holds is not in the log"
