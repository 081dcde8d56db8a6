"""Operating queries with a deadline as they run: the commands, the metrics, and a chain of two."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Callable

from click.testing import CliRunner
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.cli.main import penstock
from penstock.client import Client
from penstock.model.admission_answers import AdmissionDecision
from support.servers.processes import ServerProcess, wait_until
from support.spark.admitted_queries import numbers

Fresh = Callable[[str], str]
LONG = "60s"
SOON_S = 30.0
"""Half of LONG, and far more than a batch takes."""


def copying(
    spark: SparkSession, source: str, sink: str, checkpoint: str, **options: str
) -> StreamingQuery:
    """A query from stream to stream, named as the latter."""
    return (
        spark.readStream.format("penstock").options(**options).load(source)
        .writeStream.format("penstock").queryName(sink)
        .option("checkpointLocation", f"{checkpoint}/{sink}")
        .start(sink)
    )  # fmt: skip


def commanded(server: ServerProcess, *args: str) -> str:
    """The standard output of a command."""
    ended = CliRunner().invoke(penstock, [*args, "--data", str(server.data)])
    assert ended.exit_code == 0, (ended.output, ended.exception)
    return ended.stdout


def metrics_of(server: ServerProcess, query: str) -> dict[str, float]:
    """The samples of a query in the metrics, by name."""
    request = urllib.request.Request(
        f"{server.url}/v1/metrics", headers={"Authorization": f"Bearer {server.token}"}
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read().decode()
    sample = rf'^penstock_admission_(\w+){{query="{query}",name="\w+"}} (\S+)$'
    return {name: float(value) for name, value in re.findall(sample, text, re.MULTILINE)}


def cuts(client: Client, query: str) -> list[AdmissionDecision]:
    """The cuts among the last decisions, newest first."""
    return [decision for decision in client.explain(query).decisions if decision.is_cut]


def test_an_operator_sees_why_a_row_waits_and_changes_the_deadline_of_the_running_query(
    spark: SparkSession, server: ServerProcess, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    source, name = fresh("given"), fresh("operated")
    client.create(source, "n bigint")
    client.create(name, "n bigint")
    query = copying(spark, source, name, checkpoint, deadline=LONG)

    def last_decision() -> tuple[bool, int]:
        """The last decision: whether it is a cut, and of how many rows."""
        line = json.loads(commanded(server, "explain", name, "--json"))["decisions"][0]
        return line["is_cut"], line["rows"]

    try:
        for number in range(4):
            client.append(source, numbers(number))
            query.processAllAvailable()
        client.append(source, numbers(4))
        wait_until("the row waits", lambda: last_decision() == (False, 1))
        said = commanded(server, "explain", name)
        assert "deadline 60000 ms (set by: query)" in said
        assert "more rows may come" in said
        before = metrics_of(server, query.id)
        assert (before["deadline_seconds"], before["backlog_rows"]) == (60, 1)
        assert before["batches_total"] >= 3
        assert before["late_total"] == 0
        assert 0 < before["slack_low_seconds"] <= before["slack_seconds"] < 60
        assert before["error_ratio"] >= 0

        began = time.monotonic()
        assert commanded(server, "query", "deadline", name, "800ms") == f"query {name}: 800 ms\n"
        wait_until("the row is visible", lambda: client.read(name).num_rows == 5)
        assert time.monotonic() - began < SOON_S
        assert "deadline 800 ms (set by: operator)" in commanded(server, "explain", name)

        # No batch takes less, so that its row is late.
        commanded(server, "query", "deadline", name, "1ms")
        client.append(source, numbers(5))
        wait_until("it is visible", lambda: client.read(name).num_rows == 6)
        wait_until("a miss is counted", lambda: metrics_of(server, query.id)["late_total"] >= 1)
        after = metrics_of(server, query.id)
        assert after["deadline_seconds"] == 0.001
        assert after["slack_low_seconds"] < 0
        wait_until("nothing waits", lambda: metrics_of(server, query.id)["backlog_rows"] == 0)
    finally:
        query.stop()


def test_of_two_chained_queries_the_first_has_a_part_of_the_deadline_and_both_count_from_origin(
    spark: SparkSession, server: ServerProcess, client: Client, fresh: Fresh, checkpoint: str
) -> None:
    first, middle, last = (fresh(stem) for stem in ("first", "middle", "last"))
    for stream in (first, middle, last):
        client.create(stream, "n bigint")
    from_origin = {"deadline": "20s", "deadline.from": "origin"}
    head = copying(spark, first, middle, checkpoint, **from_origin)
    end = copying(spark, middle, last, checkpoint, **from_origin)
    try:
        for number in range(3):
            client.append(first, numbers(number))
            head.processAllAvailable()
            end.processAllAvailable()
        assert client.read(last).num_rows == 3
        wait_until(
            "the deadline is divided",
            lambda: "(set by: chain)" in commanded(server, "explain", middle),
        )
        assert (client.explain(head.id).deadline_ms or 0.0) < 20_000
        assert "deadline 20000 ms (set by: query)" in commanded(server, "explain", last)
        wait_until("it is measured", lambda: cuts(client, head.id)[0].measured_ms is not None)
        # At the end a row is as old at least as its way through the first query was long; times of
        # arrival are whole milliseconds of another clock.
        through_ms = cuts(client, head.id)[0].measured_ms or 0.0
        assert cuts(client, end.id)[0].oldest_age_ms >= through_ms - 20
    finally:
        end.stop()
        head.stop()
