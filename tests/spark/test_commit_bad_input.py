"""What the commit refuses, at start or at the moment it happens; and that nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from penstock.errors import BadCall
from penstock.model.protocol import PROTOCOL
from support.servers.processes import wait_until
from support.servers.scripted_server import ScriptedServer, say

Fresh = Callable[[str], str]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SPARKS_DEFAULT = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
MODE = "spark.penstock.commit.mode"
SNAPSHOTS = "spark.penstock.commit.snapshots"
RETRY = "spark.penstock.commit.retrySeconds"
LOCAL = "spark.penstock.local.dir"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
THREADS = 4
"""In a pool that all queries share, by default."""
SPARKS_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BATCHES_MADE = 3
KEPT = (PROVIDER, FORMAT, MODE, SNAPSHOTS, RETRY, LOCAL)


@pytest.fixture(autouse=True)
def as_before(spark: SparkSession, faults: Path) -> Iterator[None]:
    """The session's settings, whatever a test does to them; and no faults."""
    before = {key: spark.conf.get(key, None) for key in KEPT}
    yield
    faults.unlink(missing_ok=True)
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


class Job:
    """A stateful query from one stream to another, or to files."""

    def __init__(self, spark: SparkSession, client: Client, fresh: Fresh, folder: Path) -> None:
        self._spark = spark
        self._client = client
        self.given, self.made = fresh("given"), fresh("made")
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self._sent = 0
        client.create(self.given, "n bigint")
        self.feed()

    def feed(self) -> None:
        numbers = range(self._sent, self._sent + 10)
        self._client.append(self.given, pa.table({"n": pa.array(numbers, pa.int64())}))
        self._sent += 10

    def start(self, scheme: str = "file", *, once: bool = True) -> StreamingQuery:
        counts = self._spark.readStream.format("penstock").load(self.given).groupBy("n").count()
        writer = counts.writeStream.outputMode("update").option(
            "checkpointLocation", f"{scheme}://{self.checkpoint}"
        )
        if once:
            writer = writer.trigger(availableNow=True)
        return writer.format("penstock").start(self.made)

    def run(self, scheme: str = "file") -> None:
        self.start(scheme).awaitTermination(300)

    def seen(self) -> list[int]:
        return sorted(self._client.read(self.made)["n"].to_pylist())

    def all_sent(self) -> list[int]:
        return list(range(self._sent))

    def is_all_seen(self) -> bool:
        try:
            return self.seen() == self.all_sent()
        except BadCall:  # the query has not made its stream yet
            return False


@pytest.fixture
def job(spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path) -> Job:
    return Job(spark, client, fresh, tmp_path)


def test_an_unknown_mode_names_the_ones_there_are(spark: SparkSession, job: Job) -> None:
    spark.conf.set(MODE, "sometimes")
    with pytest.raises(Exception, match="'sometimes'; it takes sync, asyncckpt, full"):
        job.run()


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("spark.penstock.commit.mod", "is no setting of Penstock .*docs/settings.md lists them"),
        (
            "spark.penstock.commit.protocol",
            "of an earlier version.*marker now: remove that setting",
        ),
        (
            "spark.penstock.coordinator.url",
            "of an earlier version.*marker now: remove that setting",
        ),
    ],
)
def test_a_setting_that_nobody_reads_is_refused_by_name(
    spark: SparkSession, job: Job, setting: str, sentence: str
) -> None:
    spark.conf.set(setting, "marker")
    try:
        with pytest.raises(Exception, match=f"{setting} .*{sentence}"):
            job.run()
    finally:
        spark.conf.unset(setting)
    job.run()
    assert job.seen() == job.all_sent()


def test_a_driver_does_not_start_with_a_setting_that_nobody_reads(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    context: Any = spark._jsc.sc()
    context.conf().set("spark.penstock.commit.protocol", "marker")
    try:
        with pytest.raises(Exception, match=r"commit\.protocol is a setting of an earlier version"):
            jvm.penstock.PenstockPlugin().driverPlugin().init(context, None)
    finally:
        context.conf().remove("spark.penstock.commit.protocol")


def test_an_unknown_place_for_snapshots_names_the_ones_there_are(
    spark: SparkSession, job: Job
) -> None:
    spark.conf.set(SNAPSHOTS, "elsewhere")
    with pytest.raises(Exception, match="'elsewhere'; it takes location, log"):
        job.run()


def test_a_provider_that_spark_would_override_is_refused(spark: SparkSession, job: Job) -> None:
    ours = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, SPARKS_DEFAULT)
    spark.conf.set(FORMAT, "1")
    job.run()
    job.feed()
    spark.conf.set(PROVIDER, str(ours))
    with pytest.raises(StreamingQueryException, match="provider_overridden"):
        job.run()
    spark.conf.set(PROVIDER, SPARKS_DEFAULT)
    job.run()
    assert job.seen() == job.all_sent()


def test_a_checkpoint_of_a_newer_format_is_refused(job: Job) -> None:
    job.run()
    job.feed()
    offsets = job.checkpoint / "offsets" / "0"
    text = offsets.read_text()
    offsets.write_text(text.replace("v1", "v99", 1))
    (job.checkpoint / "offsets" / ".0.crc").unlink(missing_ok=True)
    with pytest.raises(StreamingQueryException, match="v99"):
        job.run()
    offsets.write_text(text)
    job.run()
    assert job.seen() == job.all_sent()


def test_two_queries_on_one_checkpoint_stop_at_the_first_file_both_write(job: Job) -> None:
    job.run()
    query = job.start(once=False)
    query.processAllAvailable()
    done = {int(p.name) for p in (job.checkpoint / "offsets").iterdir() if p.name.isdigit()}
    (job.checkpoint / "offsets" / str(max(done) + 1)).write_text("v1\nof another query\n")
    job.feed()
    with pytest.raises(StreamingQueryException, match="two_queries"):
        query.awaitTermination(300)


def test_a_store_that_does_not_take_files_stops_the_query_by_its_name(
    spark: SparkSession, job: Job, faults: Path
) -> None:
    job.run("faulty")
    spark.conf.set(RETRY, "2")
    faults.write_text("fail create\n")
    job.feed()
    query = job.start("faulty", once=False)

    def go_on() -> None:
        for _ in range(20):
            query.processAllAvailable()
            job.feed()

    with pytest.raises(StreamingQueryException, match=r"faulty:.*does not take"):
        go_on()
    faults.unlink()
    job.run("faulty")
    assert job.seen() == job.all_sent()


def test_state_that_an_attempt_left_uncommitted_gives_way_to_what_the_marker_names(
    spark: SparkSession, job: Job
) -> None:
    spark.conf.set(FORMAT, "1")
    job.run()
    left = list((job.checkpoint / "state" / "0").glob("*/1.changelog"))
    assert left
    for file in left:
        file.write_bytes(b"of an attempt that was killed")
        file.with_name(f".{file.name}.crc").write_bytes(b"its checksum")
    (job.checkpoint / "commits" / "0").unlink()
    job.feed()
    job.run()
    assert job.seen() == job.all_sent()


def test_a_location_that_cannot_be_written_is_named_at_the_start(
    job: Job, faults: Path, tmp_path: Path
) -> None:
    faults.write_text("fail create\n")
    with pytest.raises(Exception, match=f"create of faulty:.*{job.checkpoint.name}.* failed"):
        job.run("faulty")
    faults.unlink()
    folder = job.checkpoint
    (tmp_path / "taken").write_text("a file")
    job.checkpoint = tmp_path / "taken" / "checkpoint"
    with pytest.raises(Exception, match=str(tmp_path / "taken")):
        job.run()
    job.checkpoint = folder
    job.run("faulty")
    assert job.seen() == job.all_sent()


def test_locations_that_hang_delay_no_query_on_another(
    spark: SparkSession, client: Client, fresh: Fresh, tmp_path: Path, faults: Path
) -> None:
    stuck = [Job(spark, client, fresh, tmp_path / str(n)) for n in range(THREADS)]
    queries = [job.start("faulty", once=False) for job in stuck]
    for query in queries:
        query.processAllAvailable()
    faults.write_text("hang create\n")
    for job in stuck:
        job.feed()
    for job in stuck:
        # Their own markers do not wait for their locations either.
        wait_until("the batch is seen", job.is_all_seen)
    free = Job(spark, client, fresh, tmp_path / "free")
    query = free.start(once=False)
    wait_until("the other batch is seen", free.is_all_seen)
    faults.unlink()
    for each in (*queries, query):
        each.stop()


def test_a_local_folder_that_cannot_be_used_is_named(spark: SparkSession, job: Job) -> None:
    taken = job.folder / "taken"
    taken.write_text("a file")
    spark.conf.set(LOCAL, str(taken))
    with pytest.raises(StreamingQueryException, match=f"{taken}, cannot be used"):
        job.run()
    spark.conf.unset(LOCAL)
    job.run()
    assert job.seen() == job.all_sent()


@pytest.mark.parametrize(
    ("protocol", "named"), [(None, "1, or names none"), (PROTOCOL - 1, f"{PROTOCOL - 1}")]
)
def test_a_server_of_another_protocol_is_refused_with_both_numbers(
    spark: SparkSession, protocol: int | None, named: str
) -> None:
    url = spark.conf.get("spark.penstock.url")
    assert url is not None
    with ScriptedServer(protocol=protocol) as older:
        older.script(say({"name": "given"}))
        spark.conf.set("spark.penstock.url", older.url)
        try:
            with pytest.raises(Exception, match=f"is of protocol {named}, and") as refused:
                spark.readStream.format("penstock").load("given")
        finally:
            spark.conf.set("spark.penstock.url", url)
    assert f"this plug-in follows protocol {PROTOCOL}" in str(refused.value)


def test_a_query_whose_offsets_spark_leaves_out_is_refused_unless_commits_are_spark_s(
    spark: SparkSession, checkpoint: str
) -> None:
    def start() -> StreamingQuery:
        writer = spark.readStream.format("rate").load().writeStream.format("noop")
        writer = writer.option("checkpointLocation", checkpoint)
        # Offsets of a batch in many: all of this test is within the first interval.
        writer = writer.option("asyncProgressTrackingCheckpointIntervalMs", "600000")
        return writer.option("asyncProgressTrackingEnabled", "true").start()

    with pytest.raises(StreamingQueryException, match="gapped_batches") as refused:
        start().awaitTermination(300)
    for fact in ("asyncProgressTrackingEnabled", f"Set {MODE}=sync"):
        assert fact in str(refused.value)
    spark.conf.set(MODE, "sync")
    make_batches(start())
    make_batches(start())
    offsets = [p for p in Path(checkpoint, "offsets").iterdir() if p.name.isdigit()]
    assert 0 < len(offsets) < BATCHES_MADE, "Spark leaves out most of them"


def make_batches(query: StreamingQuery) -> None:
    wait_until("it makes batches", lambda: is_past(query, BATCHES_MADE))
    query.stop()
    assert query.exception() is None


def is_past(query: StreamingQuery, batch: int) -> bool:
    """Whether the query has made a batch after this one; one that has failed makes no more."""
    progress = query.lastProgress
    return not query.isActive or (progress is not None and progress["batchId"] > batch)


def test_a_query_in_real_time_mode_is_refused_unless_commits_are_spark_s(
    spark: SparkSession, checkpoint: str
) -> None:
    jvm = spark._jvm
    assert jvm is not None
    spark.conf.set(PROVIDER, SPARKS_ROCKSDB)
    sources = jvm.org.apache.spark.sql.execution.streaming.sources
    numbers = sources.LowLatencyMemoryStream.apply(
        spark._jsparkSession, 1, jvm.org.apache.spark.sql.Encoders.LONG()
    )
    frame = DataFrame(numbers.toDF(), spark)

    def start() -> StreamingQuery:
        writer: Any = frame.writeStream.format("console").outputMode("update")
        writer = writer.option("checkpointLocation", checkpoint)
        query: StreamingQuery = writer.trigger(realTime="5 seconds").start()
        return query

    with pytest.raises(StreamingQueryException, match="gapped_batches") as refused:
        start().awaitTermination(300)
    assert "Real-Time Mode" in str(refused.value)
    spark.conf.set(MODE, "sync")
    query = start()
    wait_until("it makes a batch", lambda: is_past(query, 0))
    query.stop()
    assert query.exception() is None
