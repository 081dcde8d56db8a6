"""The queries of the benchmarks, as ordinary PySpark: nothing in them knows about Penstock.

`named("q4")` gives a query; its stages say what they read, write and keep. Where a name is used for
different queries elsewhere, each module says which one this is.

Every input stream has a last column `sent_at`: when the row was meant to be sent. Every row of an
answer carries one too, the latest among the rows it was made of: of both sides of a join, of all
rows of a group. The latency of a result is the time it becomes visible less its `sent_at`.
"""

from __future__ import annotations

from penstock_lab.queries.query import Frames, Query, Stage, Watermark
from penstock_lab.queries.registry import (
    ADS,
    ALL,
    CLUSTER,
    LINEAR_ROAD,
    NEXMARK,
    NEXMARK_FURTHER,
    PAPER,
    named,
)
from penstock_lab.queries.start import start, start_stage

__all__ = [
    "ADS",
    "ALL",
    "CLUSTER",
    "LINEAR_ROAD",
    "NEXMARK",
    "NEXMARK_FURTHER",
    "PAPER",
    "Frames",
    "Query",
    "Stage",
    "Watermark",
    "named",
    "start",
    "start_stage",
]
