"""Terms that cannot be kept are refused in a sentence, before a batch runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from support.servers.processes import wait_until
from support.spark.admitted_queries import batches

Fresh = Callable[[str], str]
# Without these it is refused for other reasons.
FOR_REAL_TIME_MODE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.penstock.commit.mode": "sync",
}
BAD_DURATION = r"deadline is '{}'; it takes a time above 0 .* such as 800ms, 2s"


def rate(spark: SparkSession, **options: str) -> DataFrame:
    return spark.readStream.format("rate").options(**options).load()


def started(frame: DataFrame, **trigger: Any) -> StreamingQuery:
    writer = frame.writeStream.format("noop")
    return (writer.trigger(**trigger) if trigger else writer).start()


@pytest.mark.parametrize("text", ["0s", "-1s", "soon", "800", "2 weeks", ""])
def test_a_deadline_that_is_no_time_is_refused_over_any_source(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, text: str
) -> None:
    says = BAD_DURATION.format(text)
    with pytest.raises(Exception, match=says):
        started(rate(spark, deadline=text))
    with pytest.raises(Exception, match=says):
        started(spark.readStream.schema("n int").option("deadline", text).json(str(tmp_path)))
    stream = fresh("late")
    client.create(stream, "n bigint")
    with pytest.raises(Exception, match=says):
        started(spark.readStream.format("penstock").option("deadline", text).load(stream))
    session = spark.newSession()
    session.conf.set("spark.penstock.deadline", text)
    with pytest.raises(Exception, match=says):
        started(rate(session))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"policy": "deadline"}, "policy 'deadline' needs a deadline"),
        ({"policy": "fixed"}, "policy 'fixed' needs an interval"),
        ({"policy": "slide"}, r"the query has no window\(\); give a source the option slide"),
        ({"policy": "soonest"}, "policy is 'soonest'; it takes asap, fixed"),
        ({"deadline": "1s", "importance": "0"}, "importance is '0'; it takes a number above 0"),
        ({"deadline": "1s", "deadline.from": "then"}, "it takes arrival, origin"),
    ],
)
def test_a_policy_that_lacks_what_it_needs_is_refused(
    spark: SparkSession, options: dict[str, str], says: str
) -> None:
    with pytest.raises(Exception, match=says):
        started(rate(spark, **options))


def test_sources_of_one_query_that_contradict_each_other_are_refused(spark: SparkSession) -> None:
    both = rate(spark, policy="asap").union(rate(spark, policy="auto"))
    with pytest.raises(Exception, match="have the option policy with asap and auto"):
        started(both)


@pytest.mark.parametrize(
    ("trigger", "says"),
    [
        ({"processingTime": "1 second"}, "cannot have a trigger interval of 1000 ms"),
        ({"realTime": "1 minute"}, "cannot have Real-Time Mode"),
    ],
)
@pytest.mark.parametrize("source", ["rate", "files", "log"])
def test_a_trigger_of_its_own_is_refused(
    spark: SparkSession,
    client: Client,
    fresh: Fresh,
    tmp_path: Path,
    trigger: dict[str, str],
    says: str,
    source: str,
) -> None:
    stream = fresh("timed")
    client.create(stream, "n bigint")
    session = spark.newSession()
    for key, value in FOR_REAL_TIME_MODE.items():
        session.conf.set(key, value)
    reader = session.readStream.option("deadline", "1s")
    frames = {
        "rate": lambda: reader.format("rate").load(),
        "files": lambda: reader.schema("n int").json(str(tmp_path)),
        "log": lambda: reader.format("penstock").load(stream),
    }
    # One of the few sinks that Real-Time Mode takes.
    writer = frames[source]().writeStream.format("console").outputMode("update")
    query = writer.trigger(**trigger).start()
    with pytest.raises(StreamingQueryException, match=says):
        query.awaitTermination(300)


def test_continuous_processing_is_refused(spark: SparkSession) -> None:
    writer = rate(spark, deadline="1s").writeStream.format("console")
    with pytest.raises(Exception, match="cannot have continuous processing"):
        writer.trigger(continuous="1 second").start()


def test_a_deadline_without_a_server_is_refused_with_what_to_do(
    spark: SparkSession, tmp_path: Path
) -> None:
    session = spark.newSession()
    session.conf.unset("spark.penstock.url")
    with pytest.raises(Exception, match=r"kept by a Penstock server.*penstock\.session\(\)"):
        started(rate(session, deadline="1s"))
    plain = started(rate(session))
    plain.stop()


def test_a_query_without_terms_is_as_it_was(spark: SparkSession, checkpoint: str) -> None:
    frame = rate(spark).withColumn("half", f.col("value") / 2)
    query = (
        frame.writeStream.format("noop")
        .option("checkpointLocation", checkpoint)
        .trigger(processingTime="10 milliseconds")
        .start()
    )
    try:
        wait_until("a batch has ended", lambda: bool(batches(query)))
        assert not batches(query)[-1]["sources"][0].get("metrics")
    finally:
        query.stop()
