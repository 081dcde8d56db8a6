"""The job of the tests of planned batches on a GPU that workers only think they have.

Run as a script with one JSON argument. Three queries run one after the other: one with LMStream's
batch sizes and device plans, one of whose batches a GPU does not hold whole, and one whose worker
dies on the GPU. It writes what became of them to the `status` file and ends.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import penstock
from penstock.client import Client
from penstock.model.device_plans import ExplainedPlan
from support.spark.pool_job import DEVICES, POLICY
from support.spark.sleeping_jobs import wait_until

SECONDS = 20
"""The event time of an append's rows is spread over so many seconds."""


class FakeGpuQuery:
    """A query over windows of 2 s that slide by 1 s, and its answer."""

    def __init__(
        self, spark: SparkSession, client: Client, folder: Path, name: str, **options: str
    ) -> None:
        self._client, self._stream = client, name
        client.create(name, "at timestamp, n bigint", substreams=1, key="n")
        self.rows: dict[int, int] = {}
        self.appended: list[int] = []
        reader = spark.readStream.format("penstock").options(**options)
        windows = reader.load(name).groupBy(f.window("at", "2 seconds", "1 second"))
        writer = windows.agg(f.count("n").alias("rows")).writeStream.outputMode("update")
        self._writer = writer.foreachBatch(self._keep).option("checkpointLocation", str(folder))
        self.query = self._writer.start()

    def append(self, rows: int) -> None:
        at = [n % SECONDS * 1_000_000 for n in range(rows)]
        self.appended.append(rows)
        times = pa.array(at).cast(pa.timestamp("us", "UTC"))
        self._client.append(self._stream, pa.table({"at": times, "n": list(range(rows))}))

    def append_and_wait(self, rows: int) -> None:
        self.append(rows)
        self.wait_for_all()

    def wait_for_all(self) -> None:
        """Every row is in two windows."""
        wait_until(lambda: sum(self.rows.values()) == 2 * sum(self.appended) or self._has_ended())
        assert not self._has_ended()

    def is_right(self) -> bool:
        expected: Counter[int] = Counter()
        for rows in self.appended:
            for n in range(rows):
                expected.update((n % SECONDS, n % SECONDS - 1))
        return self.rows == expected

    def plans(self) -> list[ExplainedPlan]:
        devices = self._client.explain(self.query.id).devices
        return [] if devices is None else list(devices.plans)

    def stopped(self) -> dict[str, Any]:
        """What is known of it, once all batches that were planned are measured."""
        wait_until(lambda: all(plan.measured_ms is not None for plan in self.plans()))
        explained = self._client.explain(self.query.id)
        devices = explained.devices
        assert devices is not None
        progress = [each["numInputRows"] for each in self.query.recentProgress]
        self.query.stop()
        return {
            "policy": explained.policy,
            "device_policy": devices.policy,
            "machines": list(devices.machines),
            "batch_rows": [rows for rows in progress if rows],
            "appended": self.appended,
            "is_right": self.is_right(),
            "splits": devices.splits,
            "fallbacks": dict(devices.fallbacks),
            "paths": [plan.ran_path for plan in devices.plans],
            "devices": [[each.device for each in plan.operations] for plan in devices.plans],
            "reasons": [[each.reason for each in plan.operations] for plan in devices.plans],
        }

    def _has_ended(self) -> bool:
        return self.query.exception() is not None

    def _keep(self, frame: DataFrame, _: int) -> None:
        for row in frame.collect():
            self.rows[round(row["window"]["start"].timestamp())] = row["rows"]


def main(job: dict[str, Any]) -> None:
    spark = penstock.session(
        job["master"], url=job["url"], token=job["token"], conf=job["conf"], app_name="fake"
    )
    client, folder = Client(job["url"], job["token"]), Path(job["folder"])
    killing = Path(job["killing"])

    def query(name: str, sizes: str, devices: str) -> FakeGpuQuery:
        """A query with these policies for the sizes of batches, and for devices."""
        spark.conf.set(DEVICES, "auto")
        spark.conf.set(POLICY, devices)
        return FakeGpuQuery(spark, client, folder / name, name, policy=sizes)

    runs: dict[str, Callable[[], dict[str, Any]]] = {
        "split": lambda: split(query("fake_split", "asap", "all-gpu"), job["many"]),
        "killed": lambda: killed(query("fake_killed", "asap", "all-gpu"), killing),
        "slides": lambda: slides(query("fake_slides", "slide", "lmstream"), job["many"]),
    }
    outcome = {name: run() for name, run in runs.items()}
    Path(job["status"]).write_text(json.dumps(outcome))
    spark.stop()


def split(query: FakeGpuQuery, many: int) -> dict[str, Any]:
    """The first batches tell of the GPU, the last one has more rows than it holds."""
    for _ in range(3):
        query.append_and_wait(100)
    query.append_and_wait(many)
    return query.stopped()


def killed(query: FakeGpuQuery, killing: Path) -> dict[str, Any]:
    """The worker of the last batch dies on the GPU."""
    for _ in range(2):
        query.append_and_wait(100)
    killing.touch()
    query.append_and_wait(100)
    return {**query.stopped(), "has_died": not killing.exists()}


def slides(query: FakeGpuQuery, many: int) -> dict[str, Any]:
    """Appends one after the other, faster than batches are cut; the last one is large."""
    query.append_and_wait(100)
    for _ in range(3):
        for _ in range(10):
            query.append(100)
        query.wait_for_all()
    query.append_and_wait(many)
    return query.stopped()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
