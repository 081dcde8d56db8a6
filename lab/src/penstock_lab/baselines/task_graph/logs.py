"""Opening of the log a task graph runs on: a folder of its own, or a JetStream."""

from __future__ import annotations

from pathlib import Path

from penstock.log import opening
from penstock.log.address import log_address
from penstock.log.backends.local import LocalLog

EMBEDDED = "embedded"


def open_log(where: str, folder: Path) -> LocalLog:
    """The log at `where`: `embedded`, or an address of JetStream, whose index is in the folder."""
    return opening.open_log(folder, None if where == EMBEDDED else log_address(where))
