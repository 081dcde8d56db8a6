"""A data folder and a checkpoint that an earlier protocol wrote: a query goes on from them.

Its driver and its server were killed after three batches of a count by key, of the rows 0 to 3, 1
to 4 and 2 to 5, by tests/support/spark/write_earlier.py.
"""

from __future__ import annotations

import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from penstock.client import Client
from penstock.model.protocol import PROTOCOL
from support.servers.processes import ServerProcess

FOLDERS = Path(__file__).parents[1] / "vectors" / "folders"
PROTOCOLS = (4, PROTOCOL - 1)
BATCHES = [range(batch, batch + 4) for batch in range(4)]


@pytest.fixture(params=PROTOCOLS)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerProcess]:
    with tarfile.open(FOLDERS / f"protocol_{request.param}_checkpoint.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    server = ServerProcess(tmp_path / "data").start()
    yield server
    server.stop()


def test_a_query_goes_on_from_what_an_earlier_protocol_wrote(
    spark: SparkSession, earlier: ServerProcess, tmp_path: Path
) -> None:
    client = Client(earlier.url, earlier.token)
    client.append("given", pa.table({"n": pa.array(BATCHES[-1], pa.int64())}))
    own = spark.newSession()
    own.conf.set("spark.penstock.url", earlier.url)
    own.conf.set("spark.penstock.token", earlier.token)
    counts = (
        own.readStream.format("penstock").option("url", earlier.url).load("given")
        .groupBy("n").count()
    )  # fmt: skip
    query = (
        counts.writeStream.format("penstock")
        .outputMode("update")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .option("url", earlier.url)
        .trigger(availableNow=True)
        .start("made")
    )
    query.awaitTermination(300)
    assert query.exception() is None
    assert query.lastProgress is not None
    assert query.lastProgress["batchId"] == len(BATCHES) - 1, "it began anew"
    latest = {row["n"]: row["count"] for row in client.read("made").to_pylist()}
    assert latest == Counter(n for numbers in BATCHES for n in numbers)
