"""Queries of one driver on several servers: one that hangs delays nobody on another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.errors import BadCall
from support.servers.forwarding_proxy import ForwardingProxy
from support.servers.processes import ServerProcess, wait_until
from support.spark.failpoints import Points

URL = "spark.penstock.url"
POINT = "before_marker"
THREADS = 4
"""In a pool, by default: as many queries can keep all of them busy."""


class Copying:
    """A query from a stream of its own to another, on the server of its session."""

    def __init__(
        self, spark: SparkSession, client: Client, fresh: Callable[[str], str], folder: Path
    ) -> None:
        self._client = client
        self._given, self._made = fresh("given"), fresh("made")
        client.create(self._given, "n bigint")
        writer = spark.readStream.format("penstock").load(self._given).writeStream
        writer = writer.option("checkpointLocation", str(folder / self._given))
        self.query: StreamingQuery = writer.format("penstock").start(self._made)

    def feed(self) -> None:
        self._client.append(self._given, pa.table({"n": pa.array([1], pa.int64())}))

    def is_seen(self) -> bool:
        try:
            return bool(self._client.read(self._made)["n"].to_pylist() == [1])
        except BadCall:  # the query has not made its stream yet
            return False


def is_held(points: Points, query: str) -> bool:
    return points.held(POINT, [query]) != {}


def test_markers_that_a_server_does_not_take_delay_no_query_on_another(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    points: Points,
    fresh: Callable[[str], str],
    tmp_path: Path,
) -> None:
    with ForwardingProxy(server.url) as other:
        on_other = spark.newSession()
        on_other.conf.set(URL, other.url)
        stuck = [Copying(on_other, client, fresh, tmp_path) for _ in range(THREADS)]
        points.hold(POINT, [each.query.id for each in stuck])
        for each in stuck:
            each.feed()
        for each in stuck:
            wait_until("its marker waits", partial(is_held, points, each.query.id))
        free = Copying(spark, client, fresh, tmp_path)
        free.feed()
        wait_until("the batch on the other server is seen", free.is_seen)
        assert not any(each.is_seen() for each in stuck)
        points.let_go(POINT)
        for each in stuck:
            wait_until("its batch is seen, too", each.is_seen)
        for each in (*stuck, free):
            each.query.stop()
