"""One run around a system made up for the test: the server, the sender and the reader are real."""

from __future__ import annotations

import os
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.client import Client
from penstock.client.address import Address
from penstock.errors import TryAgain
from penstock_lab.experiment import rig
from penstock_lab.experiment.checks import Check, ComparedRows
from penstock_lab.experiment.children import Sender
from penstock_lab.experiment.driver_commands import Drain, Look, Setup, Start, Tell
from penstock_lab.experiment.plan import Conditions, plan_of
from penstock_lab.experiment.query_sets import QUERY_SETS
from penstock_lab.experiment.record import Run, run_of
from penstock_lab.processes import Late
from penstock_lab.workloads.send import SenderReport

PLAN = msgspec.structs.replace(
    plan_of(QUERY_SETS["nexmark"], quick=True, queries=("q1",), chosen=("tuned",), rate=500),
    warm_up_s=0.2,
    measure_s=0.6,
    stall_s=2.0,
)
CONDITIONS = PLAN.conditions("q1", PLAN.warm_up_s)


class Made:
    """A Spark that copies bids when it is asked to drain, or does what a test wants instead."""

    pid = os.getpid()
    started = 0
    looks = 0
    on_drain: Callable[[Made], None] = lambda self: self.copy()

    def __init__(self, setup: Setup, address: Address | None) -> None:
        assert address is not None
        self.client = Client(address.url, address.token)
        self.streams: dict[str, str] = {}
        type(self).started += 1

    def wait_ready(self) -> None: ...

    def stop(self, *, at_once: bool = False) -> None:
        self.client.close()

    def kill(self) -> None:
        self.client.close()

    def ask(self, command: object, timeout_s: float) -> dict[str, Any]:
        if isinstance(command, Start):
            self.streams = command.streams
            return {"ids": {"q1": "any"}}
        if isinstance(command, Look):
            # The first batch was there before a row was, and there is one more at every look.
            self.looks += 1
            return {"batches": {"q1": self.looks - 1}}
        if isinstance(command, Drain):
            type(self).on_drain(self)
        return {"phases": {"q1": {"batches": 1.0}}}

    def copy(self) -> None:
        bids = self.client.read(self.streams["bids"])
        price = pa.array([Decimal(1)] * bids.num_rows, pa.decimal128(23, 3))
        kept = bids.select(["auction", "bidder", "date_time", "sent_at"])
        self.client.append(self.streams["q1"], kept.append_column("price", price))


def right(*_: object) -> ComparedRows:
    return ComparedRows(100, 0)


def run_with(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    on_drain: Callable[[Made], None] = lambda made: made.copy(),
    check: Check = right,
    conditions: Conditions = CONDITIONS,
) -> tuple[Run, type[Made]]:
    made = type("MadeHere", (Made,), {"started": 0, "on_drain": on_drain})
    monkeypatch.setattr(rig, "Engine", made)
    with rig.Rig("tuned", folder, cores=PLAN.cores, check=check) as tuned_rig:
        noted = tuned_rig.run(conditions)
    return run_of(conditions, "tuned", 0, noted), made


def test_a_run_is_measured_from_the_intended_send_to_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = run_with(monkeypatch, tmp_path)
    assert run.verdict.kind in ("ok", "void: late generator"), run.verdict
    assert run.sent is not None
    assert run.sent.rows == 500 * 0.8 * 0.92
    # All were shown at the end, so the oldest of those measured had waited for most of the run.
    assert run.latency is not None
    assert run.latency.rows == pytest.approx(500 * 0.6 * 0.92, abs=30)
    assert run.latency.max >= 500
    assert run.phases == {"q1": {"batches": 1.0}}
    assert run.rows_checked == 100


@pytest.mark.parametrize(("batches", "reached"), [(3, 3), (1_000, None)])
def test_a_warm_up_ends_with_its_batches_or_at_its_bound_and_the_sender_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int, reached: int | None
) -> None:
    conditions = msgspec.structs.replace(
        CONDITIONS, warm_up_s=2.0, warm_up_batches=batches, warm_up_least_s=0.0
    )
    run, _ = run_with(monkeypatch, tmp_path, conditions=conditions)
    assert run.sent is not None
    assert run.warm_up_batches is not None
    if reached is None:
        assert run.warm_up_batches < batches
        assert run.warm_up_s >= 1.5
        return
    assert run.warm_up_batches == reached
    assert run.warm_up_s < 1.9
    assert run.sent.rows < 500 * 2.6 * 0.92, "it was cut short"


def test_a_system_that_never_works_off_what_was_sent_is_stalled_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(made: Made) -> None:
        made.copy()
        raise Late("Spark did not answer", code="no_answer")

    run, made = run_with(monkeypatch, tmp_path, never)
    assert run.verdict.kind == "stalled"
    assert made.started == 2
    assert run.rows_checked == 100, "its answer is checked all the same"


def test_batches_made_before_a_system_stalled_are_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = {"number": 3, "began_ms": 1, "rows": 9, "took_ms": 7_000.0, "state_ms": 1.0}

    class Slow(Made):
        pid = os.getpid()

        def ask(self, command: object, timeout_s: float) -> dict[str, Any]:
            if isinstance(command, Tell):
                return {"batches": [batch], "steps": {}, "rss_mb": 1.0}
            if isinstance(command, Drain):
                raise Late("Spark did not answer", code="no_answer")
            return super().ask(command, timeout_s)

    monkeypatch.setattr(rig, "Engine", Slow)
    with rig.Rig("tuned", tmp_path, cores=2, check=right, tells_commits=True) as bench:
        noted = bench.run(PLAN.conditions("q1", PLAN.warm_up_s))
    assert not noted.is_drained
    assert [(batch.number, batch.took_ms) for batch in noted.batches] == [(3, 7_000.0)]
    assert noted.cpu_s is not None
    assert noted.cpu_s >= 0


def test_a_system_that_shows_nothing_is_stalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, _ = run_with(monkeypatch, tmp_path, lambda _: None)
    assert run.verdict.kind == "stalled"
    assert "no result was seen" in str(run.verdict)


def test_a_query_that_dies_is_failed_with_what_spark_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(made: Made) -> None:
        raise TryAgain("q1 has ended; Spark said: out of memory", code="query_failed")

    run, made = run_with(monkeypatch, tmp_path, dies)
    assert run.verdict.kind == "failed"
    assert "out of memory" in str(run.verdict)
    assert made.started == 1


def test_an_answer_that_differs_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs(*_: object) -> ComparedRows:
        return ComparedRows(100, 3, ("q1, batch 2: expected but not committed price=1",))

    run, _ = run_with(monkeypatch, tmp_path, check=differs)
    assert run.verdict.kind == "wrong"
    assert run.differences == ["q1, batch 2: expected but not committed price=1"]


def test_a_late_sender_voids_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_report = Sender.wait_report

    def late(self: Sender, timeout_s: float) -> SenderReport:
        sender_report = wait_report(self, timeout_s)
        return msgspec.structs.replace(
            sender_report, sent=msgspec.structs.replace(sender_report.sent, lag_ms_p99=55.0)
        )

    monkeypatch.setattr(Sender, "wait_report", late)
    run, _ = run_with(monkeypatch, tmp_path)
    assert run.verdict.kind == "void: late generator"
    assert "lag p99 is 55 ms" in str(run.verdict)
