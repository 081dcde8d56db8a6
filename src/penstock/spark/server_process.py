"""A server of one's own: a child process that lives as long as the session that needs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from penstock.client.address import Address, ServerFile, read_server_file
from penstock.client.client import Client
from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import PenstockError, TryAgain

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 10.0
PROBE_DEADLINE_S = 2.0
PAUSE_S = 0.05


class OwnServer:
    """A running server that we started and must stop. `stop` may be called twice."""

    def __init__(self, process: subprocess.Popen[bytes], address: Address) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9, to see what is left."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def stop(self) -> None:
        """Ask the server to end, and kill it if it does not; what it has answered stays durable."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def answers(address: Address, deadline_s: float = PROBE_DEADLINE_S) -> bool:
    """Whether a server that takes this token is there."""
    with Client(address.url, address.token, address.ca, deadline_s=deadline_s) as client:
        try:
            client.server()
        except PenstockError:
            return False
        return True


def running(data: Path) -> Address | None:
    """The address of the live server of that folder, if there is one."""
    left = read_server_file(data)
    if left is None or not _is_alive(left):
        return None
    return left.address if answers(left.address) else None


def start(
    data: Path, clock: Clock = SYSTEM_CLOCK, *, port: int = 0, log: str | None = None
) -> OwnServer:
    """Start a server, on a free port unless one is given, and wait until it answers.

    `log` is where the log is kept, as `penstock serve --log` takes it; None keeps it in `data`.

    Its output goes to `server.log` in the data folder, whose end is quoted when it does not start.
    """
    data.mkdir(parents=True, exist_ok=True)
    output = data / "server.log"
    command = [sys.executable, "-m", "penstock", "serve", "--data", str(data), "--port", str(port)]
    command += ["--log", log] if log is not None else []
    with output.open("wb") as out:
        # A session of its own: Ctrl-C in a terminal must end Spark first, not the server under it.
        process = subprocess.Popen(
            command,
            # Never written to: it ends when this process does, however that comes about.
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PENSTOCK_STOP_AT_EOF": "1"},
        )
    until = clock.monotonic_s() + READY_TIMEOUT_S
    while clock.monotonic_s() < until and process.poll() is None:
        left = read_server_file(data)
        if left is not None and left.pid == process.pid and answers(left.address):
            return OwnServer(process, left.address)
        clock.sleep(PAUSE_S)
    ended = process.poll()
    if ended is None:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
    last_output = output.read_text(encoding="utf-8", errors="replace").strip()[-800:]
    outcome = (
        f"ended with {ended}" if ended is not None else f"was not ready in {READY_TIMEOUT_S:g} s"
    )
    raise TryAgain(
        f"the server of {data} {outcome}; it said: {last_output or 'nothing'}",
        code="server_not_started",
    )


def _is_alive(left: ServerFile) -> bool:
    try:
        os.kill(left.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
