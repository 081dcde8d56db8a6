"""Barriers through chained queries on Spark: what others see of them, and when."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from support.aligned import PROTOCOL, doubled, numbers, once, shown, started, stream
from support.servers.processes import DriverProcess, ServerProcess, wait_until

Fresh = Callable[[str], str]
ROWS = 5
HELD_S = 1.5
"""Longer than a question to admission is held."""


@pytest.fixture
def aligned(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(PROTOCOL, "aligned")
    yield spark
    spark.conf.unset(PROTOCOL)
    for query in spark.streams.active:
        query.stop()


class Chain:
    """`outer`, doubled to `mid`, each once to `out`."""

    def __init__(self, spark: SparkSession, client: Client, fresh: Fresh, folder: Path) -> None:
        self.spark, self.client, self.folder = spark, client, folder
        self.outer, self.mid, self.out = fresh("outer"), fresh("mid"), fresh("out")
        for name in (self.outer, self.mid):
            client.create(name, "n bigint", substreams=2, key="n")
        self.sent = 0

    def first(self) -> StreamingQuery:
        return started(doubled(self.spark, self.outer, ROWS), self.mid, self.folder / "first")

    def second(self) -> StreamingQuery:
        return started(once(self.spark, self.mid), self.out, self.folder / "second")

    def both(self) -> tuple[StreamingQuery, StreamingQuery]:
        """Both queries, once they are one chain: who joins later is waited for from then on."""
        first, second = self.first(), self.second()
        known = self.client.queries
        wait_until(
            "both are chained",
            lambda: any(
                set(each["aligned"]["chain"]) == {str(first.id), str(second.id)}
                for each in known()
                if "aligned" in each
            ),
        )
        return first, second

    def send(self, count: int = 10) -> None:
        """In appends of as many rows as a batch takes at most."""
        for first in range(self.sent, self.sent + count, ROWS):
            rows = min(ROWS, self.sent + count - first)
            self.client.append(self.outer, numbers(first, rows))
        self.sent += count

    def shown(self) -> list[int]:
        return shown(self.client, self.mid, self.out)

    def barrier(self, query: StreamingQuery) -> dict[str, Any] | None:
        found = self.client.query(str(query.id))["aligned"]["barrier"]
        return None if found is None else dict(found)

    def wait_for(self, rows: int) -> None:
        """Until anyone sees so many rows of both streams; never of one more than of the other."""

        def both() -> bool:
            mid, out = self.shown()
            assert mid == out, "what a barrier completes is shown at once"
            return mid == rows

        wait_until(f"{rows} rows are shown", both)

    def assert_right(self) -> None:
        expected = [2 * n for n in range(self.sent)]
        for name in (self.mid, self.out):
            assert sorted(row["n"] for row in self.client.read(name).to_pylist()) == expected


@pytest.fixture
def chain(aligned: SparkSession, client: Client, fresh: Fresh, tmp_path: Path) -> Chain:
    return Chain(aligned, client, fresh, tmp_path)


def marked(client: Client, query: StreamingQuery) -> int:
    return len(client.markers(str(query.id)))


def test_nothing_of_a_chain_is_seen_before_all_of_it_has_passed_the_barrier(
    chain: Chain, fresh: Fresh, client: Client
) -> None:
    first, second = chain.both()
    chain.send()
    chain.wait_for(10)
    second.stop()
    chain.send()
    wait_until(
        "the first has passed", lambda: (chain.barrier(first) or {}).get("has_passed", False)
    )
    barrier = chain.barrier(first)
    assert barrier is not None
    assert barrier["waits_for"] == [str(second.id)]

    # It goes on, and the one barrier in progress stays where it is.
    before = marked(client, first)
    chain.send()
    wait_until("the first goes on", lambda: marked(client, first) >= before + 2)
    assert chain.barrier(first) == barrier
    assert chain.shown() == [10, 10]

    # So does a query outside the chain see no more of it.
    chain.spark.conf.set(PROTOCOL, "marker")
    copy = fresh("copy")
    writer = stream(chain.spark, chain.mid).writeStream.format("penstock")
    writer = writer.option("checkpointLocation", str(chain.folder / "copy"))
    writer.trigger(availableNow=True).start(copy).awaitTermination(120)
    assert shown(client, copy) == [10]
    chain.spark.conf.set(PROTOCOL, "aligned")

    assert chain.second().id == second.id
    chain.wait_for(30)
    chain.assert_right()


def test_rows_of_both_streams_are_shown_together_while_rows_keep_coming(chain: Chain) -> None:
    chain.both()
    seen: set[int] = set()

    def sent_and_looked() -> bool:
        chain.send(ROWS)
        for _ in range(10):
            mid, out = chain.shown()
            assert mid == out
            seen.add(mid)
            time.sleep(0.03)
        return len(seen) > 4

    wait_until("several barriers have passed while rows came", sent_and_looked)
    chain.wait_for(chain.sent)
    chain.assert_right()


def test_an_input_that_has_come_to_the_barrier_waits_for_the_other(
    chain: Chain, aligned: SparkSession, client: Client, fresh: Fresh
) -> None:
    side, out = fresh("side"), fresh("both")
    client.create(side, "n bigint")
    first = chain.first()
    both = once(aligned, chain.mid).union(stream(aligned, side))
    second = started(both, out, chain.folder / "both")
    chain.send()
    client.append(side, numbers(1000, 1))
    wait_until("both have been read", lambda: shown(client, chain.mid, out) == [10, 11])
    first.stop()
    chain.send()
    wait_until("a barrier has begun", lambda: chain.barrier(second) is not None)
    barrier = chain.barrier(second)
    assert barrier is not None
    assert barrier["waits_for"] == [str(first.id)]

    before = marked(client, second)
    client.append(side, numbers(2000, 1))
    time.sleep(HELD_S)
    assert marked(client, second) == before, "it has read past the barrier on one input"
    chain.first()
    wait_until("all has been read", lambda: shown(client, chain.mid, out) == [20, 22])
    rows = sorted(row["n"] for row in client.read(out).to_pylist())
    assert rows == [*(2 * n for n in range(20)), 1000, 2000]


def test_what_a_batch_without_rows_writes_is_seen_without_new_input(
    aligned: SparkSession, client: Client, fresh: Fresh, tmp_path: Path
) -> None:
    given, made = fresh("given"), fresh("made")
    client.create(given, "at timestamp")
    frame = stream(aligned, given).withWatermark("at", "1 second")
    counts = frame.groupBy(f.window("at", "10 seconds")).count().select("count")
    started(counts, made, tmp_path / "counts")
    for second in (1, 100):
        at = pa.array([second * 1_000_000], pa.timestamp("us", "UTC"))
        client.append(given, pa.table({"at": at}))
    wait_until("the first window is seen", lambda: shown(client, made) == [1])


def test_a_query_that_changes_its_protocol_leaves_its_chain(chain: Chain, client: Client) -> None:
    first, second = chain.both()
    chain.send()
    chain.wait_for(10)
    second.stop()
    chain.send()
    wait_until(
        "the first has passed", lambda: (chain.barrier(first) or {}).get("has_passed", False)
    )
    assert chain.shown() == [10, 10]
    chain.spark.conf.set(PROTOCOL, "marker")
    chain.second()
    wait_until("nobody is waited for", lambda: chain.shown() == [20, 20])
    assert "aligned" not in client.query(str(second.id))
    chain.assert_right()


def run_until(server: ServerProcess, folder: Path, reached: Callable[[], bool]) -> None:
    """Runs a driver, and kills it as soon as that is so."""
    client = server.client()
    args: dict[str, object] = {"rows_per_batch": 10}
    driver = DriverProcess(server, folder, script="aligned.py", args=args)

    def checked() -> bool:
        assert driver.is_running(), driver.said()[-4000:]
        mid, out = shown(client, "mid", "out")
        assert mid == out
        return reached()

    try:
        wait_until("the driver has come so far", checked, 120)
    finally:
        driver.kill()


def test_a_driver_that_is_killed_while_a_barrier_is_under_way_shows_every_row_once_and_together(
    tmp_path: Path,
) -> None:
    server = ServerProcess(tmp_path / "data").start()
    client = server.client()
    sent = 0

    def is_under_way(batch: int) -> bool:
        found = [each for each in client.queries() if each["name"] == "mid" and each["marker"]]
        return any(
            each["marker"]["batch"] >= batch and each["aligned"]["barrier"] is not None
            for each in found
        )

    try:
        for name in ("outer", "mid"):
            client.create(name, "n bigint", substreams=2, key="n")
        for batch in (4, 12, None):
            for _ in range(10):
                client.append("outer", numbers(sent, 10))
                sent += 10
            if batch is not None:
                run_until(server, tmp_path / "job", partial(is_under_way, batch))
                assert shown(client, "mid")[0] < sent, "it was killed when all was done"
        run_until(server, tmp_path / "job", lambda: shown(client, "mid", "out") == [sent, sent])
        expected = [2 * n for n in range(sent)]
        for name in ("mid", "out"):
            assert sorted(row["n"] for row in client.read(name).to_pylist()) == expected
    finally:
        server.stop()
