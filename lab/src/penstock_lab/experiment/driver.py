"""The Spark process of a benchmark: `python -m penstock_lab.experiment.driver SETUP`.

Runs queries one after the other in one session, so that start-up is paid once. Reads a JSON command
per line, answers each with a JSON line; Spark's own words go to the log file. Ends when its input
ends, or the process that started it is gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError, TryAgain
from penstock.spark import jvm
from penstock.spark.jar import find_jar
from penstock.testing import delayed_store
from penstock_lab.experiment import jvm_memory
from penstock_lab.experiment.batch_times import timed
from penstock_lab.experiment.driver_commands import (
    Answer,
    Command,
    Count,
    Delay,
    Drain,
    Look,
    Setup,
    Start,
    Tell,
)
from penstock_lab.experiment.plan import LOCAL, STORES
from penstock_lab.experiment.query_sets import query_set_of
from penstock_lab.experiment.running_query import CacheCounter, last_batch, phases, readings
from penstock_lab.experiment.systems import SAME_JVM, system
from penstock_lab.processes import end_on_sigterm, output_to
from penstock_lab.queries import Query, Stage, named, start_stage
from penstock_lab.workloads.load import WORKLOADS

RUNNING_TIMEOUT_S = 60.0
POLL_S = 0.05
SAID_MAX = 600


class Driver:
    """One session, and the stages of every query started since the last stop."""

    def __init__(self, setup: Setup, clock: Clock = SYSTEM_CLOCK) -> None:
        self._setup = setup
        self._system = system(setup.system)
        self._clock = clock
        self._spark = self._session()
        self._running: list[tuple[Stage, StreamingQuery]] = []
        self._counter = CacheCounter()
        self._jvm_pid = jvm_memory.jvm_of(os.getpid()) if setup.tells_commits else None

    def obey(self, command: Command) -> dict[str, Any]:
        if isinstance(command, Start):
            return self._start(command)
        if isinstance(command, Look):
            self._refuse_failed()
            return {"batches": {stage.name: last_batch(query) for stage, query in self._running}}
        if isinstance(command, Count):
            self._refuse_failed()
            return {
                stage.name: msgspec.to_builtins(self._counter.reads(query, stage.lookup))
                for stage, query in self._running
            }
        if isinstance(command, Delay):
            jvm.declare_delay(command.ms)
            return {}
        if isinstance(command, Drain):
            return self._drain()
        if isinstance(command, Tell):
            return self._commits()
        return self.stop()

    def end(self) -> None:
        self._spark.stop()

    def _session(self) -> SparkSession:
        conf = session_conf(self._setup)
        master = self._setup.master or f"local[{self._setup.cores}]"
        name = f"penstock-bench-{self._system.name}"
        if self._system.rows == "log":
            spark = penstock.session(master, app_name=name, conf=conf)
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
            builder: SparkSession.Builder = SparkSession.builder.master(master).appName(name)
            # For the store with a delay; the plug-in is on where the system's settings name it.
            for key, value in {**conf, "spark.jars": str(find_jar().path)}.items():
                builder = builder.config(key, value)
            spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        return spark

    def _start(self, command: Start) -> dict[str, Any]:
        query = named(command.query, **command.parameters)
        if self._jvm_pid is not None:
            jvm_memory.forget_peak(self._jvm_pid)
        started = []
        with self._set(command.conf):
            for stage in query.stages:
                make = self._on_log if self._system.rows == "log" else self._on_files
                started.append((stage, make(query, stage, command)))
                self._running.append(started[-1])
        if command.is_awaited:
            self._wait_for_waits(command.query, [running for _, running in started])
        return {"ids": {stage.name: str(running.id) for stage, running in started}}

    @contextlib.contextmanager
    def _set(self, conf: dict[str, str]) -> Iterator[None]:
        """Settings of the session while the block runs; a query keeps those it began with."""
        before = {key: self._spark.conf.get(key, None) for key in conf}
        for key, value in conf.items():
            self._spark.conf.set(key, value)
        try:
            yield
        finally:
            for key, earlier in before.items():
                if earlier is None:
                    self._spark.conf.unset(key)
                else:
                    self._spark.conf.set(key, earlier)

    def _wait_for_waits(self, name: str, started: list[StreamingQuery]) -> None:
        until = self._clock.monotonic_s() + RUNNING_TIMEOUT_S
        while not all(self._is_waiting(query) for query in started):
            self._refuse_failed()
            if self._clock.monotonic_s() > until:
                raise TryAgain(
                    f"{name} did not begin to wait for rows in {RUNNING_TIMEOUT_S:g} s",
                    code="query_failed",
                )
            self._clock.sleep(POLL_S)

    def _is_waiting(self, query: StreamingQuery) -> bool:
        """Whether it has come to its first wait for rows: past that, nothing is set up any more.

        The log's source has Spark run a first batch without rows; Spark's file source does not.
        """
        if self._system.rows == "log" and last_batch(query) >= 0:
            return True
        return str(query.status["message"]).startswith("Waiting for")

    def _checkpoints(self, command: Start) -> Path:
        # One slash after the scheme is a whole address too, and all that a Path keeps.
        scheme = "" if command.store == LOCAL else f"{command.store}:"
        return Path(f"{scheme}{command.folder}") / "checkpoints"

    def _on_log(self, query: Query, stage: Stage, command: Start) -> StreamingQuery:
        # The query's thread inherits it from this one; None leaves the choice to Spark.
        pool: Any = command.pool
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", pool)
        return start_stage(
            self._spark,
            stage,
            self._checkpoints(command),
            streams=command.streams,
            rows_max=command.rows_max,
            every_s=command.every_s,
            options=command.options,
        )

    def _on_files(self, query: Query, stage: Stage, command: Start) -> StreamingQuery:
        folder = Path(command.folder) / "rows"
        frames = {}
        for name in stage.reads:
            (folder / name).mkdir(parents=True, exist_ok=True)
            if name in query.inputs:
                workload = WORKLOADS[query_set_of(command.query).workload]
                schema: Any = from_arrow_schema(workload.stream_schema(name))
            else:
                schema = query.stage(name).columns
            reader = self._spark.readStream.schema(schema).format("parquet")
            frames[name] = reader.load(str(folder / name))
        writer = (
            stage.build(frames)
            .writeStream.format("parquet")
            .outputMode(stage.mode)
            .queryName(stage.name)
            .option("checkpointLocation", str(self._checkpoints(command) / stage.name))
        )
        if command.every_s:
            writer = writer.trigger(processingTime=f"{round(command.every_s * 1000)} milliseconds")
        return writer.start(str(folder / stage.name))

    def _drain(self) -> dict[str, Any]:
        for _, query in self._running:
            # What a query died of is told below, in Spark's words.
            with contextlib.suppress(PySparkException):
                query.processAllAvailable()
            self._refuse_failed()
        return {}

    def _refuse_failed(self) -> None:
        for stage, query in self._running:
            if not query.isActive:
                said = str(query.exception() or "nothing")[:SAID_MAX]
                raise TryAgain(f"{stage.name} has ended; Spark said: {said}", code="query_failed")

    def stop(self) -> dict[str, Any]:
        measurements: dict[str, Any] = {
            "phases": {stage.name: phases(query) for stage, query in self._running}
        }
        if self._setup.tells_commits:
            measurements |= self._commits()
        for _, query in self._running:
            query.stop()
        self._running.clear()
        return measurements

    def _commits(self) -> dict[str, Any]:
        """What the batches of the last stage took, and the steps of its commits, asked in time."""
        measurements: dict[str, Any] = {"batches": [], "steps": {}, "rss_mb": None, "stages": {}}
        for stage, query in self._running:
            measurements["batches"] = [
                msgspec.to_builtins(timed(batch_progress))
                for batch_progress in query.recentProgress
            ]
            measurements["stages"][stage.name] = {
                "batches": measurements["batches"],
                **(readings(query) if self._system.rows == "log" else {"work": {}}),
            }
            measurements["steps"] = jvm.commit_steps(str(query.id))
        if self._jvm_pid is not None:
            measurements["rss_mb"] = jvm_memory.peak_mb(self._jvm_pid)
        return measurements


def session_conf(setup: Setup) -> dict[str, str]:
    """The system's settings, what all systems share, every store at hand, and the setup's own."""
    stores = [delayed_store(name) for name in STORES if name != LOCAL]
    return {
        **SAME_JVM,
        **system(setup.system).conf,
        "spark.sql.shuffle.partitions": str(setup.cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **{key: value for store in stores for key, value in store.items()},
        **setup.conf,
    }


def answer(driver: Driver, line: str) -> Answer:
    command: Command
    try:
        command = msgspec.json.decode(line, type=Command)
        return Answer(driver.obey(command))
    except PenstockError as error:
        return Answer(error=error.message)
    except (PySparkException, msgspec.DecodeError) as error:
        return Answer(error=f"{type(error).__name__}: {str(error)[:SAID_MAX]}")


def _end_without_parent(clock: Clock = SYSTEM_CLOCK) -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        clock.sleep(1.0)
    # Not through `finally`: the main thread may be waiting for a query that never comes to an end.
    os._exit(1)


def main() -> None:
    """Obey until the input ends."""
    end_on_sigterm()
    setup = msgspec.json.decode(sys.argv[1], type=Setup)
    threading.Thread(target=_end_without_parent, daemon=True).start()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out, output_to(Path(setup.log)):

        def say(answered: Answer) -> None:
            print(msgspec.json.encode(answered).decode("utf-8"), file=out, flush=True)

        try:
            driver = Driver(setup)
        except PenstockError as error:
            say(Answer(error=error.message))
            sys.exit(1)
        try:
            say(Answer())
            for line in sys.stdin:
                say(answer(driver, line))
        finally:
            driver.end()


if __name__ == "__main__":
    main()
