"""Whose tasks run first on two cores of a real scheduler: jobs and queries, in and out of the pool.

Tasks only sleep. A second job comes once some tasks of the first have ended, so that the first has
all cores then.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from penstock.client import Client
from support.servers.played_admission import PlayedAdmission
from support.servers.processes import ServerProcess
from support.spark.admitted_queries import numbers, reports_sent, started, terms
from support.spark.sleeping_jobs import (
    SleepingJob,
    deadline_at,
    set_properties,
    sleeping,
    tasks_with_a_core,
    wait_until,
    within,
)

OURS = "penstock"
_numbers = itertools.count(1)


@pytest.fixture
def pool_of(spark: SparkSession) -> Callable[[str], str]:
    """Adds a pool of another order to the tree, and names it."""

    def add(policy: str) -> str:
        jvm: Any = spark._jvm
        name = f"{policy}-{next(_numbers)}"
        context = spark.sparkContext._jsc.sc()
        if policy == "failing":
            jvm.penstock.testing.SchedulePlay.addFailingPool(context, name)
        else:
            jvm.penstock.testing.SchedulePlay.addPool(context, policy, name)
        return name

    return add


def overtaking(spark: SparkSession, pool: str) -> tuple[list[int], list[int]]:
    """A job of 80 tasks due in a minute, and once it runs one of 16 due in two seconds: starts of
    both."""
    number = next(_numbers)
    early = SleepingJob(spark, f"early-{number}", 80, pool=pool, due_s=60)
    early.start()
    early.wait_for(4)
    urgent = SleepingJob(spark, f"urgent-{number}", 16, pool=pool, due_s=2)
    urgent.start()
    return early.started(), urgent.started()


def test_the_later_job_with_the_earlier_deadline_overtakes(spark: SparkSession) -> None:
    """early   ######..................######################
    urgent         ################
    """
    early, urgent = overtaking(spark, OURS)
    assert within(early, urgent) <= 2
    assert sum(start > urgent[-1] for start in early) >= 15


def test_first_come_first_served_does_not(
    spark: SparkSession, pool_of: Callable[[str], str]
) -> None:
    early, urgent = overtaking(spark, pool_of("fifo"))
    assert sum(start > urgent[0] for start in early) <= 2


@pytest.mark.parametrize("policy", ["rdas", "fair"])
def test_shares_leave_each_of_two_queries_a_core(
    spark: SparkSession, pool_of: Callable[[str], str], policy: str
) -> None:
    early, urgent = overtaking(spark, pool_of(policy))
    assert within(early, urgent) >= 8
    assert within(urgent, early) >= 8


def test_a_job_outside_the_pool_keeps_a_core_and_the_pool_the_other(spark: SparkSession) -> None:
    number = next(_numbers)
    managed = SleepingJob(spark, f"managed-{number}", 80, pool=OURS, due_s=60)
    managed.start()
    managed.wait_for(4)
    outside = SleepingJob(spark, f"outside-{number}", 10)
    outside.start()
    ours, others = managed.started(), outside.started()
    assert others[-1] < ours[-1], "it did not wait for all that the pool had"
    assert within(ours, others) >= 6


def test_jobs_outside_the_pool_hold_no_more_than_a_core_against_it(spark: SparkSession) -> None:
    number = next(_numbers)
    outside = SleepingJob(spark, f"outside-{number}", 80)
    outside.start()
    outside.wait_for(4)
    managed = SleepingJob(spark, f"managed-{number}", 10, pool=OURS, due_s=60)
    managed.start()
    ours, others = managed.started(), outside.started()
    assert ours[-1] < others[-1]
    assert within(others, ours) <= 12


def test_an_order_that_fails_is_answered_with_spark_s_own(
    spark: SparkSession, pool_of: Callable[[str], str]
) -> None:
    early, urgent = overtaking(spark, pool_of("failing"))
    assert sum(start > urgent[0] for start in early) <= 2


def test_properties_that_are_no_numbers_stop_no_job(spark: SparkSession) -> None:
    job = SleepingJob(spark, "no numbers", 4, ms=1, pool=OURS, deadlineAt="soon", weight="a lot")
    job.start()
    assert len(job.started()) == 4


def test_a_pool_that_the_user_has_chosen_wins(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    context = spark.sparkContext
    pools: dict[str | None, tuple[bool, str | None]] = {}

    def enter(chosen: str | None) -> None:
        context.setLocalProperty("spark.scheduler.pool", chosen)  # type: ignore[arg-type]
        is_in = jvm.org.apache.spark.scheduler.DeadlinePool.enter(context._jsc.sc())
        pools[chosen] = (is_in, context.getLocalProperty("spark.scheduler.pool"))

    for chosen in (None, "mine", OURS):
        thread = threading.Thread(target=enter, args=(chosen,))
        thread.start()
        thread.join()
    assert pools == {None: (True, OURS), "mine": (False, "mine"), OURS: (True, OURS)}


def test_a_query_with_a_deadline_stays_in_the_pool_that_its_user_has_chosen(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Callable[[str], str],
    checkpoint: str,
) -> None:
    stream = fresh("chosen")
    client.create(stream, "n bigint")
    client.append(stream, numbers(1))
    pools: list[str | None] = []
    queries: list[StreamingQuery] = []

    def remember(frame: DataFrame, _: int) -> None:
        frame.count()
        pools.append(frame.sparkSession.sparkContext.getLocalProperty("spark.scheduler.pool"))

    def start() -> None:
        set_properties(spark, {"spark.scheduler.pool": "mine"})
        rows = spark.readStream.format("penstock").options(**terms(admission, server)).load(stream)
        writer = rows.writeStream.foreachBatch(remember)
        queries.append(writer.option("checkpointLocation", checkpoint).start())

    starting = threading.Thread(target=start)
    starting.start()
    starting.join()
    (query,) = queries
    try:
        query.processAllAvailable()
        assert pools == ["mine"]
        # Spark shares the cores between pools, and admission reckons with that.
        assert {each["schedule"] for each in admission.asked_for(query.id)} == {"fair"}
    finally:
        query.stop()


def test_the_time_that_a_batch_waits_for_its_first_core_is_reported(
    spark: SparkSession,
    server: ServerProcess,
    client: Client,
    admission: PlayedAdmission,
    fresh: Callable[[str], str],
    checkpoint: str,
) -> None:
    """cores   ████████████ both taken ████████████┐
    batch          └ cut, planned, its tasks wait ..└ run
    """
    stream, table = fresh("waiting"), fresh("queued")
    client.create(stream, "n bigint")
    reader = spark.readStream.format("penstock").options(**terms(admission, server))
    query = started(reader.load(stream), checkpoint, table)
    try:
        client.append(stream, numbers(0))
        query.processAllAvailable()
        outside = SleepingJob(spark, fresh("outside"), 2, ms=6_000)
        outside.start()
        wait_until(lambda: tasks_with_a_core(spark) == 2)
        client.append(stream, numbers(1))
        query.processAllAvailable()
        wait_until(lambda: len(reports_sent(admission, query)) == 2)
        alone, behind = (report["queued_ms"] for report in reports_sent(admission, query))
        assert alone < 1_000 < behind <= 6_000 + 1_000
    finally:
        query.stop()


def test_of_two_queries_the_later_with_the_earlier_deadline_overtakes(
    spark: SparkSession, client: Client, fresh: Callable[[str], str], checkpoint: str
) -> None:
    stream = fresh("rows")
    client.create(stream, "k bigint", substreams=24, key="k")
    client.append(stream, pa.table({"k": list(range(200))}))
    queries: dict[str, StreamingQuery] = {}
    outputs = {name: fresh(name) for name in ("early", "urgent")}

    def start(name: str, due_s: float) -> None:
        terms = {"spark.scheduler.pool": OURS, "penstock.deadlineAt": str(deadline_at(due_s))}
        set_properties(spark, {**terms, "penstock.query": name})
        rows = spark.readStream.format("penstock").load(stream)
        queries[name] = (
            rows.selectExpr(*sleeping(10))
            .writeStream.format("penstock")
            .option("checkpointLocation", f"{checkpoint}/{name}")
            .trigger(availableNow=True)
            .start(outputs[name])
        )

    for name, due_s in (("early", 60.0), ("urgent", 2.0)):
        # The stream's thread inherits the properties of the thread that starts the query.
        starting = threading.Thread(target=start, args=(name, due_s))
        starting.start()
        starting.join()
        wait_until(lambda: _ended_tasks(spark) > 0)
    ends = {}
    for name in ("urgent", "early"):
        assert queries[name].awaitTermination(120)
        ends[name] = max(int(at) for at in client.read(outputs[name])["at"].to_pylist())
    assert ends["urgent"] < ends["early"]


def _ended_tasks(spark: SparkSession) -> int:
    """Of the stages that run now."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return sum(stage.numCompletedTasks for stage in stages if stage is not None)
