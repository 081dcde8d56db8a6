"""Children of a run: started with one JSON argument, ready when they say so, killed on purpose."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import IO

import msgspec

from penstock.errors import TryAgain

READY = "ready"
LOOK_EVERY_S = 0.25
STOP_TIMEOUT_S = 10.0


async def ended_with_parent() -> None:
    """Returns when the process that started this one is gone, however that went."""
    parent = os.getppid()
    while os.getppid() == parent:
        await asyncio.sleep(LOOK_EVERY_S)


async def first_of(*waits: Awaitable[object]) -> None:
    """Returns when one of them has; the others go on."""
    futures: list[asyncio.Future[object]] = [asyncio.ensure_future(one) for one in waits]
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)


class Child:
    """A module run as a process. What it prints to stderr goes to `log`."""

    def __init__(self, module: str, job: msgspec.Struct, log: Path) -> None:
        self.module = module
        self._log = log
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, msgspec.json.encode(job).decode("utf-8")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=out,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        """Blocks until the child says that it is."""
        if self.line() != READY:
            raise self.failed()

    def line(self) -> str:
        """The next line the child prints; empty when it has ended."""
        return _pipe(self._process.stdout).readline().decode("utf-8").strip()

    def tell(self, line: str) -> None:
        pipe = _pipe(self._process.stdin)
        pipe.write(f"{line}\n".encode())
        pipe.flush()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def failed(self) -> TryAgain:
        said = self._log.read_text(encoding="utf-8", errors="replace").strip()[-2_000:]
        return TryAgain(
            f"{self.module} ended with {self._process.poll()}; it said: {said or 'nothing'}",
            code="worker_failed",
        )

    def kill(self) -> None:
        """SIGKILL: the child has no chance to do anything more."""
        self._process.kill()
        self._process.wait()
        self._close()

    def freeze(self) -> None:
        """SIGSTOP: the child is as good as dead to all others, and does not know it."""
        self._process.send_signal(signal.SIGSTOP)

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def wait_end(self, timeout_s: float) -> int:
        """The exit code."""
        code = self._process.wait(timeout_s)
        self._close()
        return code

    def stop(self) -> str:
        """SIGTERM; the last line the child printed. May be called twice."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                said, _ = self._process.communicate(timeout=STOP_TIMEOUT_S)
                return said.decode("utf-8").strip().rpartition("\n")[2]
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close()
        return ""

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # every child is started with both
    return pipe
