"""The sender as a process of its own: pauses of Python or Spark must not delay its schedule."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import msgspec

from penstock.client.address import CA_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, Address
from penstock.errors import TryAgain
from penstock_lab.processes import tail
from penstock_lab.workloads.send import Sent

STOP_TIMEOUT_S = 10.0


class Feed:
    """A running sender. Must be stopped; `stop` may be called twice, and after `finish`."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self._process = process
        self._errors = errors

    @classmethod
    def start(cls, address: Address, folder: Path, arguments: dict[str, object]) -> Feed:
        """Start sending; `arguments` are the options of `penstock_lab.workloads.send`."""
        command = [sys.executable, "-m", "penstock_lab.workloads.send"]
        for name, value in arguments.items():
            command += [f"--{name}", str(value)]
        given = {URL_VARIABLE: address.url, TOKEN_VARIABLE: address.token}
        if address.ca is not None:
            given[CA_VARIABLE] = address.ca
        errors = folder / "sender.log"
        with errors.open("wb") as out:
            # A session of its own: Ctrl-C is for the demo, which then stops its sender.
            process = subprocess.Popen(
                command,
                env={**os.environ, **given},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=out,
                start_new_session=True,
            )
        return cls(process, errors)

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_running(self) -> bool:
        return self._process.poll() is None

    def finish(self, timeout_s: float) -> Sent:
        """Wait for its end and what it reports; raises if it failed or takes longer."""
        try:
            said, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.stop()
            raise TryAgain(
                f"the sender had not ended after {timeout_s:g} s; the machine may be too busy for "
                "this rate: try a lower --rate",
                code="sender_failed",
            ) from None
        if self._process.returncode != 0:
            raise TryAgain(
                f"the sender ended with {self._process.returncode}; it said: {tail(self._errors)}",
                code="sender_failed",
            )
        return msgspec.json.decode(said, type=Sent)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
