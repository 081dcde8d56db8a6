"""Processor time of each file of tests, and of all that its tests started.

Wall time says little where several files run at a time on few cores. `make test` prints the files
that took most, and writes all of them to `build/test-times.json`. Missing is what a process had
used that was killed together with its parent, as drivers are in tests/faults.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from penstock_lab.experiment.processor_time import cpu_s
from support.sources import ROOT

WRITTEN = ROOT / "build" / "test-times.json"
SHOWN = 25
KEY = "file_times"


class FileTimes:
    """Adds up processor time whenever the tests of another file begin."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._file: str | None = None
        self._since_s = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, location: tuple[str, int | None, str]) -> None:
        if location[0] != self._file:
            self._turn_to(location[0])

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._turn_to(None)
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[KEY] = dict(self.seconds)

    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended: its times are added to those of the run."""
        for file, seconds in getattr(node, "workeroutput", {}).get(KEY, {}).items():
            self.seconds[file] += seconds

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        slowest = sorted(self.seconds.items(), key=lambda each: -each[1])
        WRITTEN.parent.mkdir(exist_ok=True)
        WRITTEN.write_text(json.dumps(dict(slowest), indent=1))
        total_s = sum(self.seconds.values())
        terminalreporter.section(f"processor time by file, {total_s:,.0f} s in all")
        for file, seconds in slowest[:SHOWN]:
            terminalreporter.write_line(f"{seconds:7.0f} s  {Path(file).as_posix()}")

    def _turn_to(self, file: str | None) -> None:
        now_s = cpu_s([os.getpid()]) or self._since_s
        if self._file is not None:
            self.seconds[self._file] += max(now_s - self._since_s, 0.0)
        self._file, self._since_s = file, now_s
