"""Queries over a few parts of a stream, a batch each, with keys hinted ahead of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.client import Client
from penstock.observe.prefetch_counts import OperatorPrefetch
from support.servers.processes import wait_until

Fresh = Callable[[str], str]

KEY = "spark.penstock.prefetch"
INLINE = "spark.penstock.inline.bytes"
PARTS = 4
ROWS = 120
NEW_KEYS = 30
RESOURCES = "penstock.commit.jvm.JvmResources"


def part(number: int) -> pa.Table:
    """Rows of 60 keys, half of which no part before has; every key comes twice."""
    numbers = range(number * ROWS, (number + 1) * ROWS)
    keys = [number * NEW_KEYS + n % (ROWS // 2) for n in numbers]
    return pa.table({"n": pa.array(numbers, pa.int64()), "key": pa.array(keys, pa.int64())})


ALL = [row for number in range(PARTS) for row in part(number).to_pylist()]


@dataclass
class Ran:
    """A query over all parts, a batch each: what it gave, and what was counted of it."""

    mode: str
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    operators: tuple[OperatorPrefetch, ...] = ()
    plan: str = ""
    notes: tuple[str, ...] = ()
    pages_taken: int = 0

    @property
    def answer(self) -> Counter[tuple[Any, ...]]:
        if self.mode == "append":
            return Counter(self.rows)
        return Counter(dict.fromkeys(dict(self.rows).items(), 1))


@dataclass(frozen=True)
class Runs:
    spark: SparkSession
    client: Client
    fresh: Fresh
    folder: Path

    def resources(self) -> Any:
        return getattr(self.spark._jvm, RESOURCES).here()

    def run(
        self,
        operator: Callable[[DataFrame], DataFrame],
        mode: str,
        substreams: int = 1,
        parts: int = PARTS,
        *,
        is_backlog: bool = False,
    ) -> Ran:
        """Each part is appended while the batch of the one before it runs, or all before the first.

        With lookahead at A the batch waits until a part that it has appended was read ahead.
        """
        given = self.fresh("ahead")
        self.client.create(given, "n bigint, key bigint", substreams=substreams, key="key")
        parts_first = parts if is_backlog else 1
        for number in range(parts_first):
            self.client.append(given, part(number))
        ran, parts_left = Ran(mode), iter(range(parts_first, parts))
        pages = self.resources().aheadPages()
        before = pages.taken()
        reads_ahead = self.spark.conf.get(KEY) == "A"

        frames = self.spark.readStream.format("penstock")
        # A batch takes one append at least, so this makes it exactly one.
        frames = frames.option("maxRowsPerTrigger", 1) if is_backlog else frames

        def take(batch: DataFrame, _: int) -> None:
            ran.rows += [tuple(row) for row in batch.collect()]
            following = next(parts_left, None)
            if following is not None:
                self.client.append(given, part(following))
                if reads_ahead:
                    wait_until("the rows were read ahead", lambda: pages.bytes() > 0)

        query = (
            operator(frames.load(given))
            .writeStream.outputMode(mode)
            .option("checkpointLocation", str(self.folder / given))
            .foreachBatch(take)
            .start()
        )
        finish(query, ran)
        assert next(parts_left, None) is None
        ran.pages_taken = pages.taken() - before
        return ran

    def run_on_files(self, operator: Callable[[DataFrame], DataFrame], mode: str) -> Ran:
        """The same over files of Spark's own source, one for each part."""
        given, ran = self.folder / self.fresh("files"), Ran(mode)
        given.mkdir()
        for number in range(PARTS):
            pq.write_table(part(number), given / f"{number}.parquet")
        frames = self.spark.readStream.schema("n bigint, key bigint")

        def take(batch: DataFrame, _: int) -> None:
            ran.rows += [tuple(row) for row in batch.collect()]

        query = (
            operator(frames.option("maxFilesPerTrigger", 1).parquet(str(given)))
            .writeStream.outputMode(mode)
            .option("checkpointLocation", str(self.folder / f"{given.name}-checkpoint"))
            .foreachBatch(take)
            .start()
        )
        finish(query, ran)
        return ran


def finish(query: StreamingQuery, ran: Ran) -> None:
    """Works off what there is, notes what was counted and planned, and stops the query."""
    try:
        query.processAllAvailable()
        ran.operators = penstock.prefetch_counts(query).operators
        notes = penstock.plan_notes(query)
        ran.notes = tuple(note.text for note in notes if note.rule == "prefetch")
        ran.plan = query._jsq.explainInternal(False)
    finally:
        query.stop()


@contextmanager
def changed_conf(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session until the end of the block; then it is as it was."""
    before = {key: spark.conf.get(key, None) for key in conf}
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@contextmanager
def hinting_runs(spark: SparkSession, client: Client, fresh: Fresh, folder: Path) -> Iterator[Runs]:
    """Runs in which each key of a row is hinted; from where is for the test to say."""
    conf = {
        KEY: "off",
        # Every key is hinted, however often it comes.
        f"{KEY}.hot.threshold": "255",
        # Rows that come with the answer of admission are not taken from what was read ahead.
        INLINE: "0",
    }
    with changed_conf(spark, conf):
        yield Runs(spark, client, fresh, folder)
