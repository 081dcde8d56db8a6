"""Processor time of processes whose children come and go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from penstock_lab.experiment.processor_time import cpu_s

CHILDREN_THAT_END = """
import subprocess, sys
for _ in range(30):
    subprocess.run(["/bin/true"], check=True)
subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
print("ended", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def parent() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILDREN_THAT_END],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        process.kill()


def test_the_time_of_children_that_have_ended_is_counted(parent: subprocess.Popen[str]) -> None:
    assert parent.stdout is not None
    assert parent.stdout.readline() == "ended\n"
    own = psutil.Process(parent.pid).cpu_times()
    counted_s = cpu_s([parent.pid])
    assert counted_s is not None
    assert own.children_user > 0
    assert counted_s >= own.user + own.system + own.children_user


def test_a_child_that_ends_while_it_is_read_does_not_void_the_measurement(
    monkeypatch: pytest.MonkeyPatch, parent: subprocess.Popen[str]
) -> None:
    ended = subprocess.Popen(["/bin/true"])
    gone = psutil.Process(ended.pid)
    ended.wait()
    monkeypatch.setattr(psutil.Process, "children", lambda *_, **__: [gone])
    assert cpu_s([parent.pid]) is not None


def test_without_the_process_itself_there_is_no_time(parent: subprocess.Popen[str]) -> None:
    parent.kill()
    parent.wait()
    assert cpu_s([parent.pid]) is None
    assert cpu_s([]) is None
