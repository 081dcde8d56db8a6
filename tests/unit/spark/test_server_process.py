"""A server of one's own lives exactly as long as it is needed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.client.address import read_server_file, server_file
from penstock.errors import BadCall, TryAgain
from penstock.spark import server_process
from support.servers.processes import wait_until


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A killed child of a process that never waits for it stays as a zombie.
    return state != "Z"


def test_a_server_is_found_while_it_runs_and_only_then(tmp_path: Path) -> None:
    assert server_process.running(tmp_path) is None
    own = server_process.start(tmp_path)
    try:
        assert server_process.running(tmp_path) == own.address
        assert server_file(tmp_path).stat().st_mode & 0o077 == 0
    finally:
        own.stop()
        own.stop()
    assert not own.is_running()
    assert server_process.running(tmp_path) is None


def test_the_file_of_a_killed_server_is_not_taken_for_a_server(tmp_path: Path) -> None:
    own = server_process.start(tmp_path)
    os.kill(own.pid, signal.SIGKILL)
    own.stop()
    assert read_server_file(tmp_path) is not None
    assert server_process.running(tmp_path) is None
    again = server_process.start(tmp_path)
    again.stop()


def test_a_second_server_of_a_folder_says_why_it_does_not_start(tmp_path: Path) -> None:
    own = server_process.start(tmp_path)
    try:
        with pytest.raises((TryAgain, BadCall), match=rf"the server of {tmp_path} ended with 1"):
            server_process.start(tmp_path)
        assert server_process.running(tmp_path) == own.address
    finally:
        own.stop()


def test_a_killed_parent_takes_its_server_with_it(tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys\n"
        "from penstock.spark import server_process\n"
        "own = server_process.start(pathlib.Path(sys.argv[1]))\n"
        "print(own.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    pid = int(done.stdout)
    wait_until("the orphan has ended", lambda: not is_alive(pid))
    assert read_server_file(tmp_path) is None
