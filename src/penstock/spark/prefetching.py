"""Prefetching of running queries, as the plug-in in this process's JVM counts it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from penstock.errors import BadCall
from penstock.observe.prefetch_counts import QueryPrefetch
from penstock.spark.installed import need_pyspark

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def prefetch_counts(query: StreamingQuery) -> QueryPrefetch:
    """Counts of a running query's prefetching, by stateful operator, since it was started.

    Hits, misses, prefetched entries used and unused, times of access, slack, and the last switches
    of the controller with their reasons. No operators for a query without state in Penstock's
    cache, and for one that has stopped. Raises BadCall where the query is not one of a JVM with the
    plug-in.
    """
    need_pyspark()
    from penstock.spark import jvm

    if not jvm.is_running():
        raise BadCall("no Spark runs in this process; start a query first", code="no_plug_in")
    return msgspec.json.decode(jvm.prefetch_counts(str(query.runId)), type=QueryPrefetch)
