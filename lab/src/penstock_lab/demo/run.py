"""The demo from start to verdict; it leaves nothing running whatever happens."""

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
from penstock.client import Client, QueryDescription
from penstock.client.address import Address, no_server, read_server_file
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import TryAgain
from penstock_lab import oracle
from penstock_lab.demo import screen
from penstock_lab.demo.outcome import Outcome, QueryOutcome, latency_ms
from penstock_lab.demo.queries import BIDS, query
from penstock_lab.experiment.children import Sender
from penstock_lab.experiment.outside_reader import LogObserver
from penstock_lab.experiment.systems import TUNED_STORE
from penstock_lab.processes import Late, output_to, tail
from penstock_lab.queries import Stage, start
from penstock_lab.workloads.load import WORKLOADS, Load
from penstock_lab.workloads.send import SenderReport

QUERY = query()
WORKLOAD = "demo_bids"
MASTER = "local[2]"
QUIET = {"spark.ui.enabled": "false"}
SUBSTREAMS = 2
REFRESH_S = 0.5
POLL_S = 0.1
RUNNING_TIMEOUT_S = 30.0
RECENT_MS = 5_000
SENDER_GRACE_S = 30.0
SEEN_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Plan:
    """A run of the demo; `data` None means folders that are removed afterwards."""

    seconds: float = 45.0
    rate: int = 2_000
    seed: int = 7
    data: Path | None = None

    @property
    def warm_up_s(self) -> float:
        """Rows sent in this time are checked but not counted in latencies: code is compiled."""
        return min(15.0, self.seconds / 3)


@dataclass(frozen=True)
class RunningStage:
    """One stage of the demo's query under way, and the reader outside Spark that follows it."""

    stage: Stage
    query: StreamingQuery
    reader: LogObserver
    reads_after: int
    """Where in the stage's output its reader began."""

    @property
    def name(self) -> str:
        return self.stage.name

    @property
    def query_id(self) -> str:
        return str(self.query.id)


@dataclass(frozen=True)
class RunningDemo:
    """A demo that runs, with all its processes: who holds one must close it."""

    client: Client
    address: Address
    folder: Path
    stages: tuple[RunningStage, ...]

    def refuse_failed(self) -> None:
        """Raises if a query or a reader has ended by itself."""
        for stage in self.stages:
            if stage.reader.error is not None:
                raise stage.reader.error
            if not stage.query.isActive:
                cause = str(stage.query.exception() or "it was stopped").strip().splitlines()[0]
                spark_log = tail(self.folder / "spark.log")
                raise TryAgain(
                    f"query {stage.name} ended: {cause}; Spark said: {spark_log or 'nothing'}",
                    code="query_failed",
                )


def run(plan: Plan, console: Console, clock: Clock = SYSTEM_CLOCK) -> Outcome:
    """Run the demo; raises if something breaks, and returns the outcome, right or wrong, if not.

    Temporary folders are kept, and named, when the run failed: they hold the evidence.
    """
    folder = (plan.data or Path(tempfile.mkdtemp(prefix="penstock-demo-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    keep = plan.data is not None
    try:
        with _started(folder, console, clock) as demo:
            outcome = _run(plan, demo, console, clock)
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


def _run(plan: Plan, demo: RunningDemo, console: Console, clock: Clock) -> Outcome:
    with _status(console, "waiting for both queries to run"):
        _wait_running(demo, clock)
    sent_before = demo.client.describe(BIDS).rows
    load = Load(WORKLOAD, {"bids": BIDS}, plan.rate, plan.seconds, plan.seed, sent_before)
    producer = f"demo-{uuid4().hex}"
    sender = Sender(load, demo.folder / "sender.log", producer, demo.address, None)
    try:
        with _status(console, "making the bids"):
            sender.wait_ready()
        sender.go()
        report = _watch(plan, demo, sender, sent_before, console, clock)
    finally:
        sender.stop()
    with _status(console, "draining the queries"):
        _drain(demo)
    with _status(console, "checking every committed row with DuckDB"):
        ids = {stage.name: stage.query_id for stage in demo.stages}
        checked = oracle.check(QUERY, demo.client, ids, has_ended=True)
    return _outcome(plan, demo, report, checked)


def _wait_running(demo: RunningDemo, clock: Clock) -> None:
    """Until each query has committed its first batch, which Spark runs without any rows.

    The first bids would else measure how Spark starts. A query that takes too long is left to it.
    """
    until = clock.monotonic_s() + RUNNING_TIMEOUT_S
    waiting = {stage.query_id for stage in demo.stages}
    while waiting and clock.monotonic_s() < until:
        demo.refuse_failed()
        listed = demo.client.queries()
        waiting -= {listing.query for listing in listed if listing.marker is not None}
        clock.sleep(POLL_S)


def _outcome(
    plan: Plan, demo: RunningDemo, report: SenderReport, checked: oracle.Checked
) -> Outcome:
    warm_ms = report.started_ms + int(plan.warm_up_s * 1000)
    queries = []
    for stage in demo.stages:
        markers = demo.client.markers(stage.query_id)
        sightings, compared = stage.reader.seen, checked.stages[stage.name]
        queries.append(
            QueryOutcome(
                name=stage.name,
                batches=len(markers),
                rows_committed=sum(marker.rows for marker in markers),
                latency_ms_p50=latency_ms(sightings, 50, sent_after_ms=warm_ms),
                latency_ms_p99=latency_ms(sightings, 99, sent_after_ms=warm_ms),
                rows_checked=compared.rows,
                rows_different=compared.different,
            )
        )
    return Outcome(
        seconds=plan.seconds,
        rate=plan.rate,
        seed=plan.seed,
        warm_up_s=plan.warm_up_s,
        sender=report.sent,
        queries=tuple(queries),
        differences=tuple(str(difference) for difference in checked.differences),
    )


def _watch(
    plan: Plan,
    demo: RunningDemo,
    sender: Sender,
    sent_before: int,
    console: Console,
    clock: Clock,
) -> SenderReport:
    """The sender's report; until it comes, redraw, and raise as soon as a query has failed."""
    began_s = clock.monotonic_s()
    rows, at_s = sent_before, began_s
    drawing = (
        Live(console=console, auto_refresh=False, transient=True)
        if console.is_terminal
        else contextlib.nullcontext()
    )
    with drawing as live:
        while clock.monotonic_s() < began_s + plan.seconds + SENDER_GRACE_S:
            with contextlib.suppress(Late):
                return sender.wait_report(REFRESH_S)
            demo.refuse_failed()
            if live is None:
                continue
            now_rows, now_s = demo.client.describe(BIDS).rows, clock.monotonic_s()
            moment = screen.Moment(
                phase="two chained stateful queries, exactly once",
                left_s=plan.seconds - (now_s - began_s),
                rows_in=now_rows - sent_before,
                rows_per_s=(now_rows - rows) / (now_s - at_s),
                queries=tuple(_query_moments(demo, clock.wall_ms() - RECENT_MS)),
            )
            rows, at_s = now_rows, now_s
            live.update(screen.live(moment), refresh=True)
    raise TryAgain(
        f"the sender had not ended {SENDER_GRACE_S:g} s after its last bid was due; the machine "
        "may be too busy for this rate: try a lower --rate",
        code="sender_failed",
    )


def _query_moments(demo: RunningDemo, since_ms: int) -> Iterator[screen.QueryMoment]:
    listed: dict[str, QueryDescription] = {each.query: each for each in demo.client.queries()}
    for stage in demo.stages:
        described = listed.get(stage.query_id)
        marker = None if described is None else described.marker
        sightings = list(stage.reader.seen)
        yield screen.QueryMoment(
            stage.name,
            batches=0 if marker is None else marker.batch + 1,
            rows=stage.reader.rows,
            latency_ms_p50=latency_ms(sightings, 50, seen_after_ms=since_ms),
            latency_ms_p99=latency_ms(sightings, 99, seen_after_ms=since_ms),
        )


def _drain(demo: RunningDemo) -> None:
    """Let every query finish what was sent, in the order of the chain, then stop them."""
    for stage in demo.stages:
        with contextlib.suppress(PySparkException):
            # A query that has failed is named below, with what Spark said.
            stage.query.processAllAvailable()
        demo.refuse_failed()
    for stage in demo.stages:
        written = demo.client.read(stage.name, stage.reads_after).num_rows
        if not stage.reader.wait_rows(written, SEEN_TIMEOUT_S):
            raise TryAgain(
                f"{written} rows of {stage.name} are committed, and a reader that follows it saw "
                f"{stage.reader.rows} within {SEEN_TIMEOUT_S:g} s",
                code="rows_not_seen",
            )
    for stage in demo.stages:
        stage.query.stop()


@contextlib.contextmanager
def _started(folder: Path, console: Console, clock: Clock) -> Iterator[RunningDemo]:
    """Spark, a server, the streams, the queries and their readers; all gone afterwards."""
    with contextlib.ExitStack() as closing:
        with _status(console, "starting Spark and a server"), output_to(folder / "spark.log"):
            spark = penstock.session(
                MASTER, data=folder, app_name="penstock-demo", conf={**TUNED_STORE, **QUIET}
            )
            closing.callback(_stop_spark, spark, folder)
            spark.sparkContext.setLogLevel("ERROR")
        server = read_server_file(folder)
        if server is None:
            raise no_server(folder)
        client = closing.enter_context(Client(server.url, server.token, server.ca))
        bids = WORKLOADS[WORKLOAD].stream_schema("bids")
        client.create(BIDS, bids, substreams=SUBSTREAMS, key="auction")
        starts, readers = [], []
        for stage in QUERY.stages:
            client.create(stage.name, stage.columns, substreams=SUBSTREAMS, key=stage.key)
            starts.append(client.position(stage.name))
            connection = closing.enter_context(Client(server.url, server.token, server.ca))
            reader = LogObserver(connection, stage.name, None, clock)
            closing.callback(reader.stop)
            reader.start()
            readers.append(reader)
        queries = start(spark, QUERY, folder / "checkpoints")
        parts = zip(QUERY.stages, queries, readers, starts, strict=True)
        stages = tuple(RunningStage(*of_stage) for of_stage in parts)
        yield RunningDemo(client, server.address, folder, stages)


def _stop_spark(spark: SparkSession, folder: Path) -> None:
    # Python's side of Spark complains on stderr when a query is cut off by Ctrl-C.
    with output_to(folder / "spark.log"):
        spark.stop()


def _status(console: Console, text: str) -> contextlib.AbstractContextManager[object]:
    return console.status(text) if console.is_terminal else contextlib.nullcontext()
