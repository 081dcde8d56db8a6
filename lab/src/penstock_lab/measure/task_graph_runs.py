"""A task graph run on a log, without Spark: fed on a schedule, read from outside, checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from penstock.errors import PenstockError, TryAgain
from penstock.testing.nats_servers import NatsServers
from penstock_lab.baselines.task_graph.graph_process import GraphRun, LogProcess, Plan, sent_by
from penstock_lab.baselines.task_graph.reader import Seen
from penstock_lab.baselines.task_graph.sender import Sent
from penstock_lab.baselines.task_graph.sources import load_of
from penstock_lab.experiment.jetstream import REPLICAS
from penstock_lab.experiment.latency import Sighting
from penstock_lab.experiment.plan import Conditions
from penstock_lab.experiment.record import Noted
from penstock_lab.measure.log_sizes import EMBEDDED, JETSTREAM
from penstock_lab.measure.task_graph_answers import check
from penstock_lab.percentiles import percentile
from penstock_lab.workloads import sending
from penstock_lab.workloads.send import SenderReport

FILL_TICK_MS = 100
"""Few and large appends: what fills a state is not measured."""
FILL_TIMEOUT_S = 120.0


@contextlib.contextmanager
def log_host(log: str, folder: Path) -> Iterator[LogProcess]:
    """A log of its own, and with JetStream three servers of its own under it."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        address = EMBEDDED
        if log == JETSTREAM:
            address = stack.enter_context(NatsServers(folder / "nats", REPLICAS)).url
        host = LogProcess(folder, address)
        stack.callback(host.stop)
        yield host


def sightings(seen: Sequence[Seen]) -> list[Sighting]:
    """The last column of every answer is its send time."""
    return [
        Sighting(seen_rows.at_us, np.array([row[-1] for row in seen_rows.rows], np.int64))
        for seen_rows in seen
        if seen_rows.rows
    ]


def sender_report(sent: Sent) -> SenderReport:
    """The sender's report in the words of the other suites; times are the monotonic clock's."""
    summed = sending.Sent(
        rows=sent.rows,
        ticks=len(sent.lag_ms),
        seconds=round((sent.ended_us - sent.started_us) / 1e6, 3),
        duplicates=0,
        lag_ms_p50=round(percentile(sent.lag_ms, 50) or 0.0, 2),
        lag_ms_p99=round(percentile(sent.lag_ms, 99) or 0.0, 2),
        lag_ms_max=round(percentile(sent.lag_ms, 100) or 0.0, 2),
        append_ms_p50=round(sent.append_ms_p50, 2),
        append_ms_p99=round(sent.append_ms_p99, 2),
        priority_raised=sent.priority_raised,
    )
    return SenderReport(summed, sent.started_us // 1000, sent.lag_ms)


class Fill(msgspec.Struct, frozen=True):
    """The fill of a run's state: so much of the workload is sent first, as fast as it goes."""

    seconds: float = 0.0
    """Of event time."""
    open_s: float = 0.0
    """How long auctions stay open, about; 0: as in the reference."""


NOTHING = Fill()


def measure(
    graph: Plan,
    conditions: Conditions,
    host: LogProcess,
    quiet_s: float,
    fill: Fill = NOTHING,
) -> tuple[Noted, float]:
    """Measure one run: its notes, errors included, and the slowest task's commits per second.

    The run has ended when nothing new was seen for `quiet_s`, and three intervals.
    """
    noted = Noted()
    try:
        return noted, _run(graph, conditions, host, quiet_s, fill, noted)
    except PenstockError as error:
        noted.error = error.message
        return noted, 0.0


def _run(
    graph: Plan,
    conditions: Conditions,
    host: LogProcess,
    quiet_s: float,
    fill: Fill,
    noted: Noted,
) -> float:
    rate, seconds, seed = conditions.rate, conditions.seconds, conditions.seed
    quiet_s += 3 * graph.interval_ms / 1000
    running = GraphRun(graph, host)
    try:
        filled = _fill(running, conditions, fill, quiet_s)
        sender = running.sender(
            *(rate, seconds),
            seed=seed,
            tick_ms=conditions.tick_ms,
            first=filled.events,
            open_s=fill.open_s,
        )
        sender.tell(b"go")
        noted.sender_report = sender_report(sent_by(sender))
        noted.is_drained = running.wait_quiet(quiet_s, conditions.drain_s)
        seen = running.seen()
        noted.sightings = sightings(seen)
    finally:
        commits = running.stop()
    load = load_of(
        *(conditions.query, rate, fill.seconds + seconds, seed, conditions.tick_ms),
        open_s=fill.open_s,
    )
    checked = check(conditions.query, load, seen)
    noted.rows_checked, noted.rows_different = checked.rows, checked.different
    noted.differences = checked.differences
    return min(commits.values(), default=0) / (filled.took_s + seconds)


class Filled(NamedTuple):
    """The events that have filled the state, and how long the tasks were at it."""

    events: int = 0
    took_s: float = 0.0


def _fill(running: GraphRun, conditions: Conditions, fill: Fill, quiet_s: float) -> Filled:
    """Send what is to be in the state, and wait until it is."""
    if not fill.seconds:
        return Filled()
    sender = running.sender(
        *(conditions.rate, fill.seconds),
        seed=conditions.seed,
        tick_ms=FILL_TICK_MS,
        is_paced=False,
        open_s=fill.open_s,
    )
    sender.tell(b"go")
    began_us = sent_by(sender).started_us
    if not running.wait_quiet(quiet_s, FILL_TIMEOUT_S):
        raise TryAgain(
            f"what {fill.seconds:g} s of events make was not in the state after "
            f"{FILL_TIMEOUT_S:g} s",
            code="no_answer",
        )
    took_s = (running.look().last_us - began_us) / 1e6
    return Filled(round(conditions.rate * fill.seconds), max(took_s, 0.0))
