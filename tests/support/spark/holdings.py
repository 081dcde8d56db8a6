"""Holdings of the plug-in in the JVM that tests share."""

from __future__ import annotations

import json

from penstock.spark import jvm
from support.servers.processes import wait_until

RESOURCES_CLASS = "penstock.commit.jvm.JvmResources"


def holdings() -> dict[str, int]:
    """How much the plug-in has open in this JVM, by kind."""
    counts: dict[str, int] = json.loads(jvm._call_static(RESOURCES_CLASS, "holdingsJson"))
    return counts


def wait_for_an_empty_cache() -> None:
    """Wait until no store of an earlier test is open: its cache would be that of the next ones."""
    wait_until("no state is cached", lambda: holdings()["bytes of cached state"] == 0)
