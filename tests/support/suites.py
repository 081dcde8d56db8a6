"""Running the contract suite of a state store provider, which is in jvm/suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.servers.processes import SHORT_RUN
from support.sources import ROOT

BUILD = ROOT / "jvm" / "build.py"
MAIN = "org.apache.spark.sql.execution.streaming.state.contract.Main"
LIMIT_S = 1500

# Spark opens these packages of Java to itself when it starts one.
OPENED = (
    *("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "util", "util.concurrent"),
    "util.concurrent.atomic",
)

Result = dict[str, Any]


def build(option: str) -> str:
    """The last line that the build says with this option."""
    done = subprocess.run(
        [sys.executable, str(BUILD), option], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout.splitlines()[-1]


class Suite:
    """The cases whose `variant:group:case` has one of the words, or all, in a JVM of their own.

    Suites with one folder of `claims` divide them among themselves while they run. Stores are in
    `work`, if it is given, and what the JVM says in `folder`. `launcher` is a command that becomes
    the one behind it.
    """

    def __init__(
        self,
        words: Sequence[str],
        java: str,
        classes: str,
        folder: Path,
        claims: Path | None = None,
        work: Path | None = None,
        launcher: Sequence[str] = (),
    ) -> None:
        folder.mkdir()
        work = work or folder
        self._log = folder / "log"
        self._out = folder / "out"
        opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED]
        opened.append("--add-opens=java.base/sun.nio.ch=ALL-UNNAMED")
        command = [*launcher, java, "-Xmx1g", *SHORT_RUN.split(), *opened]
        command += [f"-Dspark.local.dir={work / 'local'}"]
        command += [] if claims is None else [f"-Dpenstock.suite.claims={claims}"]
        command += ["-cp", classes, MAIN]
        command += [str(work / "work"), *words]
        points = f"after_state,before_snapshot,in_commit@1:{folder / 'points'}"
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PENSTOCK_FAILPOINT": points,
        }
        with self._log.open("w") as log, self._out.open("w") as out:
            self._process = subprocess.Popen(command, stdout=out, stderr=log, env=environment)

    def results(self) -> list[Result]:
        assert self._process.wait(LIMIT_S) == 0, self._log.read_text()[-4000:]
        return [json.loads(line) for line in self._out.read_text().splitlines()]

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
