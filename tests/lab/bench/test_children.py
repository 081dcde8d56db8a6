"""The processes around a run: they answer, or it is said that they do not, and they end."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from penstock.errors import TryAgain
from penstock_lab.experiment.children import Engine, Sender
from penstock_lab.experiment.driver_commands import Setup
from penstock_lab.processes import Child, Late
from penstock_lab.workloads.load import Load


def test_a_child_that_ends_without_an_answer_is_quoted(tmp_path: Path) -> None:
    child = Child("the reader", ("json.tool", "no-such-file"), tmp_path / "log", {})
    with pytest.raises(TryAgain, match=r"the reader ended with \d; it said: [\s\S]*no-such-file"):
        child.wait_line(30)
    child.stop()


def test_a_child_that_does_not_answer_is_late_and_can_be_ended(tmp_path: Path) -> None:
    child = Child("the mute", ("json.tool",), tmp_path / "log", {})
    with pytest.raises(Late, match=r"the mute did not answer in 0.1 s"):
        child.wait_line(0.1)
    child.kill()
    assert not psutil.pid_exists(child.pid)


def test_a_system_that_does_not_start_says_why(tmp_path: Path) -> None:
    engine = Engine(Setup("flink", 2, str(tmp_path / "spark.log")), None)
    with pytest.raises(TryAgain, match="there is no system 'flink'"):
        engine.wait_ready()
    engine.stop()


def test_a_sender_makes_its_rows_waits_and_reports(tmp_path: Path) -> None:
    load = Load("nexmark", {"bids": "bids"}, 500, 0.5, tick_ms=50)
    sender = Sender(load, tmp_path / "log", "p", None, tmp_path / "rows")
    try:
        sender.wait_ready()
        assert not (tmp_path / "rows").exists()
        sender.go()
        sender_report = sender.wait_report(30)
    finally:
        sender.stop()
    assert sender_report.sent.rows == 230
    assert len(sender_report.lag_ms) == 10
    assert len(list((tmp_path / "rows" / "bids").glob("*.parquet"))) == 10


def test_a_sender_that_is_not_told_to_go_ends_with_its_input(tmp_path: Path) -> None:
    load = Load("nexmark", {"bids": "bids"}, 500, 60.0)
    sender = Sender(load, tmp_path / "log", "p", None, tmp_path / "rows")
    sender.wait_ready()
    sender.stop()
    assert not psutil.pid_exists(sender.pid)


def test_a_sender_under_way_ends_at_once(tmp_path: Path) -> None:
    load = Load("nexmark", {"bids": "bids"}, 500, 600.0)
    sender = Sender(load, tmp_path / "log", "p", None, tmp_path / "rows")
    sender.wait_ready()
    sender.go()
    sender.stop()
    assert not psutil.pid_exists(sender.pid)
