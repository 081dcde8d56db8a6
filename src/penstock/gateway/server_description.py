"""The description of a server: its version, its log's end, how many consumers stay away."""

from __future__ import annotations

import os
from importlib import metadata

from penstock.gateway.context import Gateway
from penstock.log.reading.visible import log_end
from penstock.log.retention.due import away
from penstock.log.store.view import StoreView
from penstock.model.answers import ServerDescription
from penstock.model.protocol import PROTOCOL


def version() -> str:
    """The installed version; a source tree that is not installed says so."""
    try:
        return metadata.version("penstock")
    except metadata.PackageNotFoundError:
        return "0+source"


def describe(view: StoreView, gateway: Gateway) -> ServerDescription:
    """Describe a server. Goes through all consumers, which takes long where they are many."""
    now_ms = gateway.collector.now_ms(view)
    return ServerDescription(
        version=version(),
        protocol=PROTOCOL,
        data=str(gateway.log.folder.path.absolute()),
        pid=os.getpid(),
        started_at_ms=gateway.started_at_ms,
        now_ms=gateway.clock.wall_ms(),
        consumers_away=len(away(view, now_ms, gateway.settings)),
        latest=log_end(view),
    )
