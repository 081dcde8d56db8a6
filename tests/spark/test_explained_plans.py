"""Notes of the plug-in's rules reach the server, which explains a query with them."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

import penstock
from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.evicting_queries import per_window, rows


def test_the_server_explains_how_operators_are_planned(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    stream, name = fresh("explained"), fresh("query")
    client.create(stream, "n bigint, key bigint, at timestamp", substreams=1)
    source = spark.readStream.format("penstock").option("policy", "asap").load(stream)
    query = (
        per_window(source.withWatermark("at", "30 seconds"))
        .writeStream.format("noop")
        .queryName(name)
        .option("checkpointLocation", checkpoint)
        .start()
    )
    try:
        client.append(stream, rows(0, 0))
        query.processAllAvailable()
        in_driver = [
            (n.rule, n.operator, n.text, n.since_batch) for n in penstock.plan_notes(query)
        ]
        assert {rule for rule, *_ in in_driver} >= {"eviction", "panes"}
        # They go with the first question after the batch in which they were made.
        wait_until(
            "the server has the notes",
            lambda: (
                [
                    (note.rule, note.operator, note.text, note.since_batch)
                    for note in client.explain(name).plan_notes
                ]
                == in_driver
            ),
        )
    finally:
        query.stop()
