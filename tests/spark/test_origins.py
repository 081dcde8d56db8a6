"""Along a chain of queries every batch keeps when its oldest row first arrived in the log."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.client import Client


def test_the_end_of_a_chain_knows_the_first_arrival_of_what_it_read(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    """Two queries, one after the other, over two appends; the first batch reads one of them.

    appends    1        2
    first      [1]      [2]
    second              [1, 2]
    """
    first, middle, last = (fresh(stem) for stem in ("first", "middle", "last"))
    client.create(first, "k bigint", substreams=2)

    def run(source: str, target: str) -> str:
        query = (
            spark.readStream.format("penstock")
            .load(source)
            .writeStream.format("penstock")
            .option("checkpointLocation", f"{checkpoint}/{target}")
            .trigger(availableNow=True)
            .start(target)
        )
        assert query.awaitTermination(120)
        return str(query.id)

    for value in (1, 2):
        client.append(first, pa.table({"k": [value]}))
        one_step = run(first, middle)
    two_steps = run(middle, last)
    earlier, later = client.markers(one_step)
    (end,) = client.markers(two_steps)
    assert earlier.origin_at_ms is not None
    assert later.origin_at_ms is not None
    assert earlier.origin_at_ms < earlier.arrived_at_ms < later.origin_at_ms
    assert end.origin_at_ms == earlier.origin_at_ms
    assert end.rows == 2
