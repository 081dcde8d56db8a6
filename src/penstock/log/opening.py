"""Opening a log: the one door to every backend."""

from __future__ import annotations

from pathlib import Path

from penstock.clock import SYSTEM_CLOCK, Clock
from penstock.errors import BadCall
from penstock.log.address import LogAddress
from penstock.log.backends.embedded.log import EmbeddedLog
from penstock.log.backends.local import LocalLog
from penstock.settings.server import Settings


def open_log(
    folder: Path,
    address: LogAddress | None = None,
    settings: Settings | None = None,
    clock: Clock = SYSTEM_CLOCK,
    *,
    cut_damaged_tail: bool = False,
) -> LocalLog:
    """The log in the folder, or the one in JetStream with its index in the folder."""
    if address is None:
        return EmbeddedLog.open(folder, settings, clock, cut_damaged_tail=cut_damaged_tail)
    if cut_damaged_tail:
        raise BadCall(
            "--cut-damaged-tail is for a log in its own folder; leave it out with --log",
            code="bad_request",
        )
    # Its client is an extra that a server without --log does not need.
    from penstock.log.backends.jetstream.log import JetStreamLog

    return JetStreamLog.open(folder, address, settings, clock)
