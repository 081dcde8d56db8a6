"""Opening of the log a task graph runs on: a folder of its own, or a JetStream."""

from __future__ import annotations

from pathlib import Path

from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.local import LocalLog

EMBEDDED = "embedded"


def open_log(where: str, folder: Path) -> LocalLog:
    """`where` is `embedded`, or the address of a JetStream, whose index is then in the folder."""
    if where == EMBEDDED:
        return EmbeddedLog.open(folder)
    # The client of NATS is needed by those only who have a JetStream.
    from penstock.log.backends.jetstream.address import log_address
    from penstock.log.backends.jetstream.log import JetStreamLog

    return JetStreamLog.open(folder, log_address(where))
