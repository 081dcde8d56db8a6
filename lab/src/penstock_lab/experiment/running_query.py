"""Readings of a running query, taken before it stops: phases, work of tasks, reads of state."""

from __future__ import annotations

from typing import Any

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

import penstock
from penstock_lab.experiment.phases import PHASES, TRIGGER, batch_of
from penstock_lab.experiment.state_reads import CacheReads, less, state_reads
from penstock_lab.percentiles import median


def readings(query: StreamingQuery) -> dict[str, Any]:
    """Work of tasks and reads of state, batch by batch, and notes on the plan, of a query on the
    log."""
    return {
        "work": work_ms(query),
        "reads": [msgspec.to_builtins(state_reads(p)) for p in query.recentProgress],
        "notes": [f"{note.rule}: {note.text}" for note in penstock.plan_notes(query)],
    }


def last_batch(query: StreamingQuery) -> int:
    """Number of the last batch that has ended; -1 before the first.

    Asked of the JVM's object: what PySpark returns was written as JSON and read again as a whole,
    which is felt by a query that is looked at several times a second.
    """
    jvm_query: Any = query._jsq
    progress = jvm_query.lastProgress()
    return -1 if progress is None else int(progress.batchId())


def phases(query: StreamingQuery) -> dict[str, float]:
    """Medians over the batches with rows that Spark still remembers, its last hundred."""
    batches = [batch_of(progress) for progress in query.recentProgress]
    full = [batch for batch in batches if batch.rows]
    names = [name for name in (TRIGGER, *PHASES) if any(name in b.duration_ms for b in full)]
    took_ms = {name: median([b.duration_ms.get(name, 0) for b in full]) or 0.0 for name in names}
    last = max((batch.batch for batch in batches), default=-1)
    return {"batches": last + 1, "rows": median([b.rows for b in full]) or 0.0, **took_ms}


def work_ms(query: StreamingQuery) -> dict[int, tuple[float, float]]:
    """Milliseconds the tasks of each batch ran, summed over them, and its jobs waited for cores."""
    # A wait for a shuffle is part of the state's updates already.
    return {
        ledger.batch: (
            sum(ms for step, ms in ledger.task_ms.items() if step != "shuffle wait"),
            ledger.wall_ms.get("schedule", 0.0),
        )
        for ledger in penstock.batch_steps(query)
    }


class CacheCounter:
    """Counts of caches in front of state and of look-ups, each since they were last asked for."""

    def __init__(self) -> None:
        self._earlier: dict[str, CacheReads] = {}

    def reads(self, query: StreamingQuery, lookup: str | None) -> CacheReads:
        """The counts of a query; `lookup` is the name of its enrichment, if it has one."""
        totals = state_cache(query) if lookup is None else lookup_cache(lookup)
        earlier = self._earlier.get(str(query.runId), CacheReads())
        self._earlier[str(query.runId)] = totals
        return less(totals, earlier)


def state_cache(query: StreamingQuery) -> CacheReads:
    """The cache in front of RocksDB, since the query was started."""
    counts = penstock.prefetch_counts(query)
    operators = counts.operators
    last_moves = [operator.switches[-1] for operator in operators if operator.switches]
    return CacheReads(
        hits=sum(operator.hits for operator in operators),
        misses=sum(operator.misses for operator in operators),
        waited=sum(operator.waited for operator in operators),
        used=sum(sum(operator.used.values()) for operator in operators),
        unused=sum(sum(operator.unused.values()) for operator in operators),
        suppressed=sum(operator.suppressed for operator in operators),
        dropped=sum(operator.dropped for operator in operators),
        evictions=sum(operator.evictions for operator in operators),
        kept_writes=sum(operator.kept_writes for operator in operators),
        path_us=sum(operator.path_us for operator in operators),
        hint_bytes=sum(operator.hint_bytes for operator in operators),
        shuffle_bytes=counts.shuffle_bytes,
        active="".join(sorted({name for operator in operators for name in operator.active})),
        moved_after=max((move.batch for move in last_moves), default=-1),
        reason="; ".join(move.reason for move in last_moves),
    )


def lookup_cache(name: str) -> CacheReads:
    """The cache of an enrichment, since its query was built."""
    counts = penstock.enrich_counts(name)
    batches = [keys for batch, keys in counts.on_path.items() if batch >= 0]
    return CacheReads(
        hits=counts.hits,
        misses=counts.misses,
        waited=counts.waited,
        used=counts.prefetched_used,
        unused=counts.prefetched_unused,
        batches_on_path=sum(keys > 0 for keys in batches),
        lookup_batches=len(batches),
    )
