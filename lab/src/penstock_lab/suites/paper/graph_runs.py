"""Runs of the paper suite without Spark: a rate by the paper's rule, protocols, and recovery.

The rule takes the largest rate at which markers every 100 ms are hardly slower than at the smallest
one and transactions hardly differ from them: both are busy then, and neither is overwhelmed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from penstock_lab.experiment import worker
from penstock_lab.experiment.figures import latency_p50
from penstock_lab.experiment.record import Kind
from penstock_lab.experiment.turns import Step, Steps, Tell
from penstock_lab.experiment.worker import Job
from penstock_lab.suites import protocols
from penstock_lab.suites.log.runs import log_at
from penstock_lab.suites.paper.cells import Graphs
from penstock_lab.suites.paper.papers import RULE_SHARE
from penstock_lab.suites.protocols.runs import Record

RECOVERY_WORKER = "penstock_lab.measure.task_recovery"
RECOVERY_TIMEOUT_S = 1_200.0


class Recovered(msgspec.Struct, frozen=True):
    """Recoveries and what they took, by how: milliseconds of each of them."""

    took: dict[str, Any]


class Rung(msgspec.Struct, frozen=True):
    """Both protocols at one rate, every 100 ms: their median latencies, None of a run that does not
    count."""

    rate: int
    marker_ms: float | None
    transaction_ms: float | None


def runs(plan: Graphs, folder: Path, tell: Tell) -> Steps[Record | Recovered]:
    rates = dict(plan.protocols.rates)
    for query, rungs in plan.rungs.items():
        rates[query] = yield from _rate(plan, query, rungs, folder, tell)
    chosen = msgspec.structs.replace(plan.protocols, rates=rates)
    yield from kept(protocols.runs.runs(chosen, folder, tell), [])
    if plan.recovery is not None:
        with log_at(plan.protocols.log, folder / "nats") as log:
            options = {"log": log, **plan.recovery.options}
            job = Job("recovery", str(folder / "recovery"), options)
            yield Step("Q8: recovering, cold and warm", partial(_recovered, job))


def _recovered(job: Job) -> Recovered:
    return Recovered(worker.ask_apart(RECOVERY_WORKER, job, RECOVERY_TIMEOUT_S))


def _rate(
    plan: Graphs, query: str, rungs: Sequence[int], folder: Path, tell: Tell
) -> Generator[Step[Record | Recovered], Record | Recovered, int]:
    tried: list[Rung] = []
    for rate in rungs:
        records: list[Record] = []
        steps = protocols.runs.runs(plan.rung(query, rate), folder, tell)
        yield from kept(steps, records, "sustain")
        tried.append(rung_of(rate, records))
        if not is_near_smallest(tried[-1], tried[0]):
            break  # a larger rate is not nearer to the smallest one's latency
    return rate_by_rule(tried)


def kept(
    steps: Steps[Record], records: list[Record], kind: Kind = "compared"
) -> Steps[Record | Recovered]:
    """The steps, their records kept and named by what they were made for."""

    def measured(step: Step[Record]) -> Record:
        return msgspec.structs.replace(step.measure(), kind=kind)

    with contextlib.closing(steps):
        step = next(steps, None)
        while step is not None:
            record = yield Step(step.words, partial(measured, step))
            assert isinstance(record, Record)
            records.append(record)
            try:
                step = steps.send(record)
            except StopIteration:
                return


def rung_of(rate: int, records: Sequence[Record]) -> Rung:
    medians = {
        record.system: latency_p50(record)
        for record in records
        if record.is_counted and record.run.rate == rate
    }
    return Rung(rate, medians.get("marker"), medians.get("transaction"))


def is_near_smallest(rung: Rung, smallest: Rung) -> bool:
    """Whether markers are at most so much slower than at the smallest rate."""
    if rung.marker_ms is None or smallest.marker_ms is None:
        return False
    return rung.marker_ms <= (1 + RULE_SHARE) * smallest.marker_ms


def is_alike(rung: Rung) -> bool:
    """Whether both protocols are as fast, but for so much."""
    if rung.marker_ms is None or rung.transaction_ms is None:
        return False
    return abs(rung.transaction_ms - rung.marker_ms) <= RULE_SHARE * rung.marker_ms


def rate_by_rule(tried: Sequence[Rung]) -> int:
    """The largest rate that meets both conditions; the smallest where none does."""
    meeting = [rung.rate for rung in tried if is_near_smallest(rung, tried[0]) and is_alike(rung)]
    return max(meeting, default=tried[0].rate)


def rungs_of(records: Sequence[Record], query: str) -> list[Rung]:
    """Rungs that were tried for a query, from the smallest rate up."""
    mine = [r for r in records if (r.kind, r.cell.query) == ("sustain", query)]
    return [rung_of(rate, mine) for rate in sorted({record.run.rate for record in mine})]
