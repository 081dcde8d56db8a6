"""Children of the laboratory: they answer, or it is said that they do not, and they end."""

from __future__ import annotations

from pathlib import Path

import msgspec
import psutil
import pytest

from penstock.errors import TryAgain
from penstock_lab.processes import Child, JobChild, Late
from support.servers.processes import wait_until

ECHO = """
import signal, sys, threading
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
print("ready", flush=True)
stop.wait()
print("stopped", flush=True)
"""


class Job(msgspec.Struct):
    name: str


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobChild:
    (tmp_path / "penstock_echo.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return JobChild("penstock_echo", Job("j"), tmp_path / "log")


def test_a_child_that_ends_without_an_answer_is_quoted_as_often_as_it_is_asked(
    tmp_path: Path,
) -> None:
    child = Child("the reader", ("json.tool", "no-such-file"), tmp_path / "log")
    for _ in range(2):
        with pytest.raises(TryAgain, match=r"the reader ended with \d; it said: [\s\S]*no-such-fi"):
            child.wait_line(30)
    child.stop()
    assert not child.is_running()


def test_a_child_that_does_not_answer_is_late_and_can_be_killed(tmp_path: Path) -> None:
    child = Child("the mute", ("json.tool",), tmp_path / "log")
    with pytest.raises(Late, match=r"the mute did not answer in 0.1 s"):
        child.wait_line(0.1)
    child.kill()
    assert not psutil.pid_exists(child.pid)


def test_a_child_that_takes_the_end_of_its_input_as_a_request_is_stopped_by_it(
    tmp_path: Path,
) -> None:
    child = Child("the formatter", ("json.tool", "--compact"), tmp_path / "log")
    child.tell(b"[1]")
    child.stop()
    assert child.wait_line(1) == b"[1]"


def test_a_job_says_when_it_is_ready_and_reports_when_it_is_stopped(echo: JobChild) -> None:
    echo.wait_ready()
    assert echo.is_running()
    assert echo.stop_for_report() == b"stopped"
    assert echo.stop_for_report() is None


def test_a_frozen_job_goes_on_when_it_is_woken(echo: JobChild) -> None:
    echo.wait_ready()
    echo.freeze()
    process = psutil.Process(echo.pid)
    wait_until("it stands still", lambda: process.status() == psutil.STATUS_STOPPED)
    echo.wake()
    assert echo.stop_for_report() == b"stopped"
