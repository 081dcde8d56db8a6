"""Real processes for tests: a server and drivers, to be killed at will."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from penstock.client import Client
from penstock.testing.ports import free_port

TESTS = Path(__file__).resolve().parents[2]
START_S = 180.0
"""How long anything may take that takes seconds; only what fails waits for it."""

# Tests run for seconds: compiling hot code well costs more than it gives on two cores. Java then
# keeps a small place for what it has compiled; when that is full it throws the code of all queries
# away.
SHORT_RUN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"

QUICK_START = {
    "spark.driver.extraJavaOptions": SHORT_RUN,
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # Spark keeps 100 generated classes, fewer than a dozen queries have: it would generate and
    # compile them anew in every batch.
    "spark.sql.codegen.cache.maxEntries": "2000",
}
"""Spark settings for short runs."""


def wait_until(goal: str, condition: Callable[[], bool], seconds: float = START_S) -> None:
    """Polls, because the thing waited for is another process; fails with `what` when late.

    What takes long is asked for less often: its processes have the cores to share with the asking.
    """
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > seconds:
            raise AssertionError(f"waited {seconds:g} s in vain until {goal}")
        time.sleep(min(max(0.02, waited / 20), 0.2))


class ServerProcess:
    """`penstock serve` on one data folder and one port, so that it can come back after a kill."""

    def __init__(
        self,
        data: Path,
        *options: str,
        python: tuple[str, ...] = (sys.executable,),
        environment: dict[str, str] | None = None,
    ) -> None:
        self.data = data
        self._options = options
        self._python = python
        self._environment = environment or {}
        self.port = free_port()
        self.token = "test-token-0123456789"
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> ServerProcess:
        self.data.mkdir(parents=True, exist_ok=True)
        command = [*self._python, "-m", "penstock", "serve", "--data", str(self.data)]
        with (self.data / "server.out").open("ab") as out:
            self._process = subprocess.Popen(
                [*command, "--port", str(self.port), *self._options],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PENSTOCK_TOKEN": self.token, **self._environment},
            )
        wait_until("the server answers", self._answers)
        return self

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(START_S)

    def client(self) -> Client:
        return Client(self.url, self.token)

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise AssertionError((self.data / "server.out").read_text())
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", self.port)) == 0


class DriverProcess:
    """A PySpark driver, a script of tests/support/spark, in a process group of its own."""

    def __init__(
        self,
        server: ServerProcess,
        folder: Path,
        *,
        script: str = "driver_job.py",
        master: str = "local[2]",
        failpoint: str | None = None,
        supervised: bool = False,
        args: dict[str, object] | None = None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.log = folder / f"driver-{time.monotonic_ns()}.log"
        self.status_file = folder / f"status-{time.monotonic_ns()}.json"
        given = dict(args or {})
        extra = given.pop("conf", {})
        assert isinstance(extra, dict)
        job = {
            "conf": {**QUICK_START, **extra},
            "url": server.url,
            "token": server.token,
            "master": master,
            "folder": str(folder),
            "status": str(self.status_file),
            **given,
        }
        paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": paths}
        self._stopped = folder / "stopped"
        # Those of an earlier driver stand nowhere any more.
        shutil.rmtree(self._stopped, ignore_errors=True)
        if failpoint is not None:
            # One that is chosen while the job runs is a folder already.
            is_folder = Path(failpoint).is_absolute()
            at = failpoint if is_folder else f"{failpoint}:{self._stopped}"
            environment["PENSTOCK_FAILPOINT"] = at
        supervisor = ["-m", "penstock", "run", "--backoff", "0.5"] if supervised else []
        program = [*supervisor, str(TESTS / "support" / "spark" / script), json.dumps(job)]
        with self.log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, *program],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def status(self) -> dict[str, object]:
        """What the job last wrote of itself: queries, their ids, batches, error."""
        try:
            return dict(json.loads(self.status_file.read_text()))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}

    def stopped_queries(self) -> set[str]:
        """Ids of the queries that stand still at the failpoint."""
        return {path.name for path in self._stopped.glob("*-*")}

    def is_running(self) -> bool:
        return self._process.poll() is None

    def has_processes(self) -> bool:
        """Whether any process is left that the driver has started, or the driver itself."""
        self._process.poll()
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return False
        return True

    def jobs(self) -> list[psutil.Process]:
        """The processes of the job that a supervisor runs: its Python and its JVM."""
        children: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return children

    def kill_job(self) -> None:
        """kill -9 of the job, not of its supervisor."""
        for process in self.jobs():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def stop(self) -> None:
        """Asks the supervisor, which asks the job, to end."""
        self._process.terminate()
        self._process.wait(START_S)

    def kill(self) -> None:
        """kill -9 of the Python driver and its JVM together."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def said(self) -> str:
        return self.log.read_text(errors="replace")
