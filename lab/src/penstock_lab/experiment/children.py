"""The processes around a run: Spark's, and the sender's. Neither outlives its `stop`."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec

from penstock.client.address import CA_VARIABLE, TOKEN_VARIABLE, URL_VARIABLE, Address
from penstock.errors import TryAgain
from penstock.spark.class_archive import FOLDER_VARIABLE
from penstock_lab.experiment.driver_commands import Answer, Command, Setup
from penstock_lab.processes import Child
from penstock_lab.workloads.load import Load
from penstock_lab.workloads.send import READY, SenderReport

READY_TIMEOUT_S = 120.0


class Engine(Child):
    """A Spark process that takes commands; `module` is what it runs.

    Its JVM starts with the archive of classes in `archives`; None: without one.
    """

    def __init__(
        self,
        setup: Setup,
        address: Address | None,
        module: str = "penstock_lab.experiment.driver",
        archives: Path | None = None,
    ) -> None:
        command = (module, msgspec.json.encode(setup).decode("utf-8"))
        log = Path(setup.log)
        # State and shuffles are on the disk that is measured, and go when the run's folder does.
        env = {**_address_variables(address), "SPARK_LOCAL_DIRS": str(log.parent / "spark")}
        # Systems that are compared start alike, unless it is starts that are compared.
        env[FOLDER_VARIABLE] = str(archives or "")
        super().__init__(f"Spark ({setup.system})", command, log, env)

    def wait_ready(self) -> None:
        self.wait_answer(READY_TIMEOUT_S)

    def ask(self, command: Command, timeout_s: float) -> dict[str, Any]:
        """The answer to a command; TryAgain with the child's sentence if it could not."""
        self.begin(command)
        return self.wait_answer(timeout_s)

    def begin(self, command: Command) -> None:
        """Give the command; `wait_answer` must follow, again after it was Late."""
        self.tell(msgspec.json.encode(command))

    def wait_answer(self, timeout_s: float) -> dict[str, Any]:
        answered = msgspec.json.decode(self.wait_line(timeout_s), type=Answer)
        if answered.error is not None:
            raise TryAgain(answered.error, code="query_failed")
        return answered.said


class Sender(Child):
    """A sender with everything made, waiting to begin."""

    def __init__(
        self, load: Load, log: Path, producer: str, address: Address | None, into: Path | None
    ) -> None:
        command = ["penstock_lab.workloads.send", "--wait", "--producer", producer]
        command += ["--load", msgspec.json.encode(load).decode("utf-8")]
        if into is not None:
            command += ["--into", str(into)]
        super().__init__("the sender", command, log, _address_variables(address))

    def wait_ready(self) -> None:
        line = self.wait_line(READY_TIMEOUT_S)
        if line != READY.encode("ascii"):
            raise TryAgain(f"the sender said {line!r}, not {READY!r}", code="worker_failed")

    def go(self) -> None:
        self.tell(b"go")

    def stop(self, *, at_once: bool = True) -> None:
        # While it sends it does not look at its input.
        super().stop(at_once=at_once)

    def cut_short(self) -> None:
        """Make the sender stop and report what it has sent."""
        self._process.send_signal(signal.SIGTERM)

    def wait_report(self, timeout_s: float) -> SenderReport:
        return msgspec.json.decode(self.wait_line(timeout_s), type=SenderReport)


def _address_variables(address: Address | None) -> dict[str, str]:
    if address is None:
        return {}
    variables = {URL_VARIABLE: address.url, TOKEN_VARIABLE: address.token}
    return variables if address.ca is None else {**variables, CA_VARIABLE: address.ca}
