"""A real standalone cluster on this machine: a master and two workers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pyspark

from penstock.testing.ports import free_port
from support.servers.processes import wait_until
from support.spark.class_archive import options

CONF = {
    "spark.executor.extraJavaOptions": options(),
    "spark.executor.memory": "600m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
}
"""Settings of an application with one executor per worker."""


class Cluster:
    """`spark-class` processes. Each worker has a loopback address, so a host, of its own."""

    def __init__(self, folder: Path, cores: int = 1) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._cores = cores
        self._spark = Path(pyspark.__file__).parent
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        port, web = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._start(
            "master",
            "127.0.0.1",
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)),
        )
        wait_until("the master is up", lambda: "I have been elected leader" in self.log("master"))
        for number in (1, 2):
            self.start_worker(number)
        wait_until(
            "both workers are registered",
            lambda: all("Successfully registered" in self.log(f"worker{n}") for n in (1, 2)),
        )

    def start_worker(self, number: int) -> None:
        host = f"127.0.0.{number}"
        self._start(
            f"worker{number}",
            host,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", host, "--cores", str(self._cores), "--memory", "1g", "--webui-port", "0"),
            *("--work-dir", str(self._folder / f"work{number}"), self.url),
        )

    def executors(self) -> dict[int, int]:
        """The executors that are alive: the number of the worker of each, by its process."""
        return {
            child.pid: number
            for number in (1, 2)
            if (worker := self._processes[f"worker{number}"]).poll() is None
            for child in psutil.Process(worker.pid).children(recursive=True)
            if _is_executor(child)
        }

    def executors_said(self) -> str:
        """The log of all executors that the workers have had."""
        return "".join(path.read_text() for path in self._folder.glob("work*/app-*/*/stderr"))

    def kill_worker(self, number: int) -> None:
        """kill -9 of a worker and of the executors on it, as when a machine is lost."""
        process = self._processes[f"worker{number}"]
        everyone = [psutil.Process(process.pid)]
        everyone += everyone[0].children(recursive=True)
        for process_of_worker in everyone:
            with contextlib.suppress(psutil.NoSuchProcess):
                process_of_worker.kill()
        process.wait()

    def ends(self) -> int:
        """How often a worker was told to end an executor, or saw one end."""
        words = ("Asked to kill executor", "finished with state")
        return sum(self.log(f"worker{n}").count(word) for n in (1, 2) for word in words)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def stop(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

    def _start(self, name: str, host: str, main: str, *args: str) -> None:
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": host,
            "SPARK_HOME": str(self._spark),
            "PYSPARK_PYTHON": sys.executable,
        }
        with (self._folder / f"{name}.log").open("wb") as out:
            self._processes[name] = subprocess.Popen(
                [str(self._spark / "bin" / "spark-class"), main, *args],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=environment,
            )


def _is_executor(process: psutil.Process) -> bool:
    try:
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    except psutil.Error:
        return False  # it has just ended
