"""Runs the demo from start to verdict, and leaves nothing running whatever happens."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.live import Live

import penstock
from penstock.client import Client
from penstock.client.address import Address, no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import TryAgain
from penstock_lab.demo import screen
from penstock_lab.demo.check import check
from penstock_lab.demo.committed import Marked, markers
from penstock_lab.demo.feed import Feed
from penstock_lab.demo.oracle import Verdict
from penstock_lab.demo.outcome import Outcome, QueryOutcome
from penstock_lab.demo.queries import STATE, STEPS, start
from penstock_lab.demo.watch import Watcher
from penstock_lab.processes import output_to, tail
from penstock_lab.workloads.demo_bids import BIDS_DDL
from penstock_lab.workloads.send import Sent

MASTER = "local[2]"
SUBSTREAMS = 2
REFRESH_S = 0.5
POLL_S = 0.1
RUNNING_TIMEOUT_S = 30.0
RECENT_MS = 5_000
SENDER_GRACE_S = 30.0
SEEN_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Plan:
    """What to run: `data` None means folders that are removed afterwards."""

    seconds: float = 45.0
    rate: int = 2_000
    seed: int = 7
    data: Path | None = None

    @property
    def warm_up_s(self) -> float:
        """Rows sent in this time are checked but not counted in latencies: code is compiled."""
        return min(15.0, self.seconds / 3)


@dataclass(frozen=True)
class Stage:
    """Everything that runs: who holds one must close it."""

    spark: SparkSession
    client: Client
    address: Address
    folder: Path
    queries: tuple[StreamingQuery, ...]
    watchers: tuple[Watcher, ...]

    def refuse_failed(self) -> None:
        """Raises if a query or a reader has ended by itself."""
        for step, query, watcher in zip(STEPS, self.queries, self.watchers, strict=True):
            if watcher.error is not None:
                raise watcher.error
            if not query.isActive:
                cause = str(query.exception() or "it was stopped").strip().splitlines()[0]
                said = tail(self.folder / "spark.log")
                raise TryAgain(
                    f"query {step.name} ended: {cause}; Spark said: {said or 'nothing'}",
                    code="query_failed",
                )


def run(plan: Plan, console: Console, clock: Clock = SYSTEM_CLOCK) -> Outcome:
    """Run it all; raises if something breaks, and returns the outcome, right or wrong, if not.

    Temporary folders are kept, and named, when the run failed: they hold the evidence.
    """
    folder = (plan.data or Path(tempfile.mkdtemp(prefix="penstock-demo-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    keep = plan.data is not None
    try:
        with _staged(folder, console, clock) as stage:
            outcome = _run(plan, stage, console, clock)
        keep = keep or outcome.failure is not None
    except Exception:
        keep = True
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
        elif plan.data is None:
            console.print(f"logs and data are kept in {folder}", soft_wrap=True)
    return outcome


def _run(plan: Plan, stage: Stage, console: Console, clock: Clock) -> Outcome:
    with _status(console, "waiting for both queries to run"):
        _wait_running(stage, clock)
    began_ms = clock.wall_ms()
    first = stage.client.describe(STEPS[0].reads).rows
    feed = Feed.start(
        stage.address,
        stage.folder,
        {
            "stream": STEPS[0].reads,
            "rate": plan.rate,
            "seconds": plan.seconds,
            "seed": plan.seed,
            "first": first,
            "producer": f"demo-{uuid4().hex}",
        },
    )
    try:
        _watch(plan, stage, feed, first, console, clock)
        sent = feed.finish(SENDER_GRACE_S)
    finally:
        feed.stop()
    with _status(console, "draining the queries"):
        _drain(stage)
    with _status(console, "checking every committed row with DuckDB"):
        marked = {
            step.name: markers(stage.client, str(query.id))
            for step, query in zip(STEPS, stage.queries, strict=True)
        }
        verdicts = check(stage.client, marked)
    warm_ms = began_ms + int(plan.warm_up_s * 1000)
    return _outcome(plan, stage, sent, marked, verdicts, warm_ms)


def _wait_running(stage: Stage, clock: Clock) -> None:
    """Until each query has committed its first batch, which Spark runs without any rows.

    The first bids would else measure how Spark starts. A query that takes too long is left to it.
    """
    until = clock.monotonic_s() + RUNNING_TIMEOUT_S
    waiting = {str(query.id) for query in stage.queries}
    while waiting and clock.monotonic_s() < until:
        stage.refuse_failed()
        waiting -= {one["query"] for one in stage.client.queries() if one["marker"] is not None}
        clock.sleep(POLL_S)


def _outcome(
    plan: Plan,
    stage: Stage,
    sent: Sent,
    marked: dict[str, list[Marked]],
    verdicts: dict[str, Verdict],
    warm_ms: int,
) -> Outcome:
    return Outcome(
        seconds=plan.seconds,
        rate=plan.rate,
        seed=plan.seed,
        warm_up_s=plan.warm_up_s,
        sender=sent,
        queries=tuple(
            QueryOutcome(
                name=step.name,
                batches=len(marked[step.name]),
                rows_committed=sum(marker.rows for marker in marked[step.name]),
                latency_ms_p50=watcher.latency_ms(50, sent_after_ms=warm_ms),
                latency_ms_p99=watcher.latency_ms(99, sent_after_ms=warm_ms),
                rows_checked=verdicts[step.name].rows_checked,
                rows_different=verdicts[step.name].rows_different,
            )
            for step, watcher in zip(STEPS, stage.watchers, strict=True)
        ),
        differences=tuple(str(one) for verdict in verdicts.values() for one in verdict.first),
    )


def _watch(
    plan: Plan, stage: Stage, feed: Feed, first: int, console: Console, clock: Clock
) -> None:
    """Until the sender ends: redraw, and raise as soon as a query has failed."""
    began_s = clock.monotonic_s()
    rows, at_s = first, began_s
    drawing = (
        Live(console=console, auto_refresh=False, transient=True)
        if console.is_terminal
        else contextlib.nullcontext()
    )
    with drawing as shown:
        while feed.is_running():
            clock.sleep(REFRESH_S)
            stage.refuse_failed()
            if shown is None:
                continue
            now_rows, now_s = stage.client.describe(STEPS[0].reads).rows, clock.monotonic_s()
            moment = screen.Moment(
                phase="two chained stateful queries, exactly once",
                left_s=plan.seconds - (now_s - began_s),
                rows_in=now_rows - first,
                rows_per_s=(now_rows - rows) / (now_s - at_s),
                queries=tuple(_seen(stage, clock.wall_ms() - RECENT_MS)),
            )
            rows, at_s = now_rows, now_s
            shown.update(screen.live(moment), refresh=True)


def _seen(stage: Stage, since_ms: int) -> Iterator[screen.Seen]:
    known = {one["query"]: one for one in stage.client.queries()}
    for step, query, watcher in zip(STEPS, stage.queries, stage.watchers, strict=True):
        marker = known.get(str(query.id), {}).get("marker") or {}
        yield screen.Seen(
            step.name,
            batches=int(marker.get("batch", -1)) + 1,
            rows=watcher.rows,
            latency_ms_p50=watcher.latency_ms(50, seen_after_ms=since_ms),
            latency_ms_p99=watcher.latency_ms(99, seen_after_ms=since_ms),
        )


def _drain(stage: Stage) -> None:
    """Let every query finish what was sent, in the order of the chain, then stop them."""
    for query in stage.queries:
        with contextlib.suppress(PySparkException):
            # A query that has failed is told apart below, with what Spark said.
            query.processAllAvailable()
        stage.refuse_failed()
    for step, watcher in zip(STEPS, stage.watchers, strict=True):
        written = stage.client.read(step.name, watcher.after).num_rows
        if not watcher.wait_rows(written, SEEN_TIMEOUT_S):
            raise TryAgain(
                f"{written} rows of {step.name} are committed, and a reader that follows it saw "
                f"{watcher.rows} within {SEEN_TIMEOUT_S:g} s",
                code="rows_not_seen",
            )
    for query in stage.queries:
        query.stop()


@contextlib.contextmanager
def _staged(folder: Path, console: Console, clock: Clock) -> Iterator[Stage]:
    """Spark, a server, the streams, the queries and their readers; all gone afterwards."""
    with contextlib.ExitStack() as closing:
        with _status(console, "starting Spark and a server"), output_to(folder / "spark.log"):
            spark = penstock.session(
                MASTER, data=folder, app_name="penstock-demo", conf={**STATE, **QUIET}
            )
            closing.callback(_stop_spark, spark, folder)
            spark.sparkContext.setLogLevel("ERROR")
        left = read_server_file(folder)
        if left is None:
            raise no_server(folder)
        client = closing.enter_context(Client(left.url, left.token, left.ca))
        client.create(STEPS[0].reads, BIDS_DDL, substreams=SUBSTREAMS, key="auction")
        watchers = []
        for step in STEPS:
            client.create(step.name, step.ddl, substreams=SUBSTREAMS, key=step.question.key_name)
            reader = closing.enter_context(Client(left.url, left.token, left.ca))
            watcher = Watcher(reader, step.name, client.position(step.name), clock)
            closing.callback(watcher.stop)
            watcher.start()
            watchers.append(watcher)
        queries = tuple(start(spark, step, folder / "checkpoints") for step in STEPS)
        yield Stage(spark, client, left.address, folder, queries, tuple(watchers))


QUIET = {"spark.ui.enabled": "false"}


def _stop_spark(spark: SparkSession, folder: Path) -> None:
    # Python's side of Spark complains on stderr when a query is cut off by Ctrl-C.
    with output_to(folder / "spark.log"):
        spark.stop()


def _status(console: Console, text: str) -> contextlib.AbstractContextManager[object]:
    return console.status(text) if console.is_terminal else contextlib.nullcontext()
