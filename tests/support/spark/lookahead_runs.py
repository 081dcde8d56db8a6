"""Queries over a few parts of a stream, a batch each, with keys hinted ahead of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

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
    ) -> Ran:
        """Each part is appended while the batch of the one before it runs.

        With lookahead at A the batch waits until that part was read ahead.
        """
        given = self.fresh("ahead")
        self.client.create(given, "n bigint, key bigint", substreams=substreams, key="key")
        self.client.append(given, part(0))
        ran, parts_left = Ran(mode), iter(range(1, parts))
        pages = self.resources().aheadPages()
        before = pages.taken()
        reads_ahead = self.spark.conf.get(KEY) == "A"

        def take(batch: DataFrame, _: int) -> None:
            ran.rows += [tuple(row) for row in batch.collect()]
            following = next(parts_left, None)
            if following is not None:
                self.client.append(given, part(following))
                if reads_ahead:
                    wait_until("the rows were read ahead", lambda: pages.bytes() > 0)

        query = (
            operator(self.spark.readStream.format("penstock").load(given))
            .writeStream.outputMode(mode)
            .option("checkpointLocation", str(self.folder / given))
            .foreachBatch(take)
            .start()
        )
        try:
            query.processAllAvailable()
            assert next(parts_left, None) is None
            ran.operators = penstock.prefetch_counts(query).operators
            notes = penstock.plan_notes(query)
            ran.notes = tuple(note.text for note in notes if note.rule == "prefetch")
            ran.plan = query._jsq.explainInternal(False)
            ran.pages_taken = pages.taken() - before
        finally:
            query.stop()
        return ran


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
