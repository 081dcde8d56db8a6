"""Spark Structured Streaming that keeps a latency promise and shows each result exactly once.

`penstock.session()` starts Spark with the plug-in and a server; `penstock.attach(builder)` adds
them to a builder of yours; `enrich` looks values up in a remote store; `create`, `append`, `read`,
`follow` and `consume` work on streams without Spark.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.errors import BadCall, Bug, Damaged, Fenced, PenstockError, TryAgain

if TYPE_CHECKING:
    from penstock.client import Appended, Client, Consumed, Consumer, Followed, Stream
    from penstock.client.default import append, connect, consume, create, follow, read
    from penstock.lookup.ahead import Ahead
    from penstock.lookup.counts import LookupCounts
    from penstock.lookup.redis_store import Redis
    from penstock.observe.batch_ledger import BatchSteps
    from penstock.observe.plan_notes import PlanNote
    from penstock.observe.prefetch_counts import OperatorPrefetch, QueryPrefetch
    from penstock.spark.columnar import columnar
    from penstock.spark.enrich import enrich, enrich_counts
    from penstock.spark.outputs import Outputs
    from penstock.spark.prefetching import prefetch_counts
    from penstock.spark.session import (
        attach,
        batch_steps,
        commit_steps,
        plan_notes,
        session,
        verify,
    )

    __version__: str

__all__ = [
    "Ahead",
    "Appended",
    "BadCall",
    "BatchSteps",
    "Bug",
    "Client",
    "Consumed",
    "Consumer",
    "Damaged",
    "Fenced",
    "Followed",
    "LookupCounts",
    "OperatorPrefetch",
    "Outputs",
    "PenstockError",
    "PlanNote",
    "QueryPrefetch",
    "Redis",
    "Stream",
    "TryAgain",
    "append",
    "attach",
    "batch_steps",
    "columnar",
    "commit_steps",
    "connect",
    "consume",
    "create",
    "enrich",
    "enrich_counts",
    "follow",
    "plan_notes",
    "prefetch_counts",
    "read",
    "session",
    "verify",
]


# PySpark takes most of a second to import and Arrow a quarter of one; a process that needs neither
# must not wait for them.
_FOUND_IN = {
    "penstock.client": ("Appended", "Client", "Consumed", "Consumer", "Followed", "Stream"),
    "penstock.client.default": ("append", "connect", "consume", "create", "follow", "read"),
    "penstock.lookup.ahead": ("Ahead",),
    "penstock.lookup.counts": ("LookupCounts",),
    "penstock.lookup.redis_store": ("Redis",),
    "penstock.spark.columnar": ("columnar",),
    "penstock.spark.enrich": ("enrich", "enrich_counts"),
    "penstock.spark.outputs": ("Outputs",),
    "penstock.observe.batch_ledger": ("BatchSteps",),
    "penstock.observe.plan_notes": ("PlanNote",),
    "penstock.observe.prefetch_counts": ("OperatorPrefetch", "QueryPrefetch"),
    "penstock.spark.prefetching": ("prefetch_counts",),
    "penstock.spark.session": (
        *("attach", "batch_steps", "commit_steps", "plan_notes", "session", "verify"),
    ),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib import metadata

        return metadata.version("penstock")
    for module, names in _FOUND_IN.items():
        if name in names:
            return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
