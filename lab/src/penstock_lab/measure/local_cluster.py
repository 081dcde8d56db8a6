"""A standalone cluster of Spark's on this machine: a master, two workers, an executor on each."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psutil
import pyspark

from penstock.clock import SYSTEM_CLOCK
from penstock.errors import TryAgain
from penstock.testing.ports import free_port

WORKERS = 2
UP_TIMEOUT_S = 60.0
POLL_S = 0.1
HOST = "127.0.0.1"
MASTER, WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
EXECUTOR = "CoarseGrainedExecutorBackend"
CONF = {
    "spark.executor.memory": "1g",
    "spark.executor.cores": "1",
    "spark.cores.max": str(WORKERS),
    "spark.driver.host": HOST,
}
"""Settings of an application with one executor on each worker."""


class LocalCluster:
    """The processes of a cluster; none outlives `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = Path(pyspark.__file__).parent
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.url = f"spark://{HOST}:{free_port()}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open(self) -> None:
        port = self.url.rpartition(":")[2]
        arguments: tuple[str, ...] = ("--host", HOST, "--port", port)
        self._start("master", MASTER, *arguments, "--webui-port", str(free_port()))
        self._wait("the master is up", lambda: "elected leader" in self._log("master"))
        for number in range(WORKERS):
            work = str(self._folder / f"work{number}")
            arguments = ("--host", HOST, "--cores", "1", "--memory", "2g", "--webui-port", "0")
            self._start(f"worker{number}", WORKER, *arguments, "--work-dir", work, self.url)
        self._wait(
            "all workers are registered",
            lambda: all(
                "Successfully registered" in self._log(f"worker{number}")
                for number in range(WORKERS)
            ),
        )

    def executors(self) -> list[psutil.Process]:
        """The executors that are alive."""
        return [
            child
            for name, process in self._processes.items()
            if name != "master" and process.poll() is None
            for child in psutil.Process(process.pid).children(recursive=True)
            if _is_executor(child)
        ]

    def wait_executors(self) -> None:
        """Block until there is one on each worker."""
        self._wait("every worker has an executor", lambda: len(self.executors()) == WORKERS)

    def close(self) -> None:
        for process in reversed(self._processes.values()):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> None:
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": HOST,
            "SPARK_HOME": str(self._home),
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self._folder / f"{name}.log").open("wb") as out:
            self._processes[name] = subprocess.Popen(
                [str(self._home / "bin" / "spark-class"), main, *arguments],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    def _log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _wait(self, words: str, is_so: Callable[[], bool]) -> None:
        until_s = SYSTEM_CLOCK.monotonic_s() + UP_TIMEOUT_S
        while not is_so():
            if SYSTEM_CLOCK.monotonic_s() > until_s:
                raise TryAgain(
                    f"it did not come about in {UP_TIMEOUT_S:g} s that {words}; try again on a "
                    "machine with less to do",
                    code="worker_failed",
                )
            SYSTEM_CLOCK.sleep(POLL_S)


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any(EXECUTOR in word for word in process.cmdline())
    except psutil.Error:
        return False
