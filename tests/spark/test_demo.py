"""The demo as a user runs it: a process, its output, its exit code, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.clock import SYSTEM_CLOCK

pytestmark = pytest.mark.spark

TIMEOUT_S = 300
# Adds one to the first price as the oracle sees it: every answer over it is then wrong.
PLANT = """
import pyarrow as pa
from penstock.cli.main import main
from penstock_lab.oracle.committed import Committed

true_read = Committed._read

def planted(self, client, name, stream):
    rows = true_read(self, client, name, stream)
    if name != "bids":
        return rows
    prices = rows["price"].to_pylist()
    wrong = pa.array([prices[0] + 1, *prices[1:]], pa.int64())
    return rows.set_column(rows.column_names.index("price"), "price", wrong)

Committed._read = planted
main()
"""


def run(*command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a temporary folder of its own, so that what is left there can be seen."""
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, "TMPDIR": str(folder)},
    )


def left_running(folder: Path) -> list[str]:
    """Processes that name the folder on their command line."""
    command_lines = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.pid != os.getpid():
            command_lines.append(line)
    return command_lines


def demo_folders(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("penstock-demo-*")]


def test_every_committed_row_is_right_and_nothing_is_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "demo.json"
    done = run("-m", "penstock", "demo", "--seconds", "8", "--json", str(path), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "all equal what DuckDB computes" in done.stdout
    figures: dict[str, Any] = json.loads(path.read_text())["figures"]
    assert figures["rows_sent"] == 16_000
    assert figures["rows_different"] == 0
    assert figures["auction_totals.batches"] > 0
    assert figures["category_leaders.rows_committed"] > 0
    assert figures["rows_checked"] >= figures["rows_committed"] > 0
    assert figures["auction_totals.latency_ms_p50"] <= figures["auction_totals.latency_ms_p99"]
    assert demo_folders(tmp_path) == []
    assert left_running(tmp_path) == []


def test_a_planted_wrong_answer_ends_in_exit_code_1_and_is_named(tmp_path: Path) -> None:
    done = run("-c", PLANT, "demo", "--seconds", "1", "--rate", "500", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "committed rows differ from what DuckDB computes" in done.stdout
    assert "auction_totals, batch " in done.stdout
    assert "logs and data are kept in" in done.stdout
    assert left_running(tmp_path) == []


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock", "demo", "--seconds", "60"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:
        until = SYSTEM_CLOCK.monotonic_s() + TIMEOUT_S
        while SYSTEM_CLOCK.monotonic_s() < until and not _is_sending(process.pid):
            SYSTEM_CLOCK.sleep(0.2)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=TIMEOUT_S)
    assert len(children) >= 3, "a server, a JVM and a sender were running"
    assert process.returncode == 130, said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert demo_folders(tmp_path) == []


def _is_sending(pid: int) -> bool:
    for child in psutil.Process(pid).children(recursive=True):
        # A child may end while it is looked at.
        with contextlib.suppress(psutil.Error):
            if "penstock_lab.workloads.send" in child.cmdline():
                return True
    return False
