"""Plans of the prefetch suite: what a command line asks for, quick or whole."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.plan import known
from penstock_lab.experiment.query_sets import key_of
from penstock_lab.queries.ads.ysb import REDIS
from penstock_lab.suites.prefetch.cells import (
    CACHES,
    LOOKUP_QUERIES,
    PARTS,
    QUERIES,
    QUICK_QUERIES,
    ROCKSDB_QUERIES,
    SKEWS,
    Group,
    Level,
    Plan,
    Workload,
)
from penstock_lab.suites.prefetch.modes import (
    ABLATION,
    ASYNCIO,
    ASYNCIO_OF,
    FULL_MODES,
    LRU,
    MODES,
    OURS,
    QUICK_MODES,
    READS,
    THRESHOLDS,
)


def plan_of(
    *,
    quick: bool = False,
    queries: Sequence[str] = (),
    modes: Sequence[str] = (),
    reads: Sequence[str] = (),
    parts: Sequence[str] = (),
    rate: int | None = None,
    redis: str = REDIS,
) -> Plan:
    """The plan of a command line; raises BadCall, with the choices, for an unknown name."""
    wanted, names, kinds, asked = (
        known(given, choices, f"prefetch has no {kind} {{}}; it has", f"unknown_{kind}")
        for given, choices, kind in (
            (queries, QUERIES, "query"),
            (modes, (*MODES, ASYNCIO), "mode"),
            (reads, tuple(READS), "reads"),
            (parts, PARTS, "part"),
        )
    )
    wanted = wanted or (QUICK_QUERIES if quick else QUERIES)
    kinds = kinds or (("read1ms",) if quick else tuple(READS))
    usual = QUICK_MODES if quick else FULL_MODES
    both = tuple(name for name in usual if name in ASYNCIO_OF)
    spelled = (both if name == ASYNCIO else (name,) for name in names)
    chosen = tuple(dict.fromkeys(name for each in spelled for name in each)) or usual
    groups = _groups(wanted, kinds, chosen, quick=quick)
    if not quick and not names:
        groups += _sweeps(wanted)
    return Plan(
        groups,
        asked or PARTS,
        repeats=3 if quick else 5,
        backlog_repeats=1 if quick else 3,
        overhead_turns=7 if quick else 9,
        rate=rate,
        redis=redis,
        again_max=3 if quick else 30,
        left_out=_left_out() if quick else (),
    )


def _groups(
    queries: Sequence[str], kinds: Sequence[str], modes: tuple[str, ...], *, quick: bool
) -> tuple[Group, ...]:
    """A group for each kind of cold reads; look-ups read no state, so one kind is enough."""
    levels: tuple[Level, ...] = ("high",) if quick else ("high", "low")
    rated = tuple(name for name in modes if not quick or name != LRU) or modes
    made = []
    for place, kind in enumerate(kinds):
        here = [query for query in queries if place == 0 or query not in LOOKUP_QUERIES]
        if here:
            workloads = tuple(Workload(query, kind) for query in here)
            made.append(Group(workloads, modes, levels, rated))
    return tuple(made)


def _sweeps(queries: Sequence[str]) -> tuple[Group, ...]:
    """Skews, cache sizes, thresholds and the ablation: of one query each, on declared reads."""
    query = next((name for name in queries if name in ROCKSDB_QUERIES), None)
    if query is None:
        return ()
    compared = (LRU, "asyncio-lru", OURS)
    skews = tuple(Workload(query, hot_share=share) for share in SKEWS)
    variants = (OURS, *(f"{OURS}-hot{hot}" for hot in THRESHOLDS), *ABLATION)
    return (
        Group(skews, compared, ("high",), compared),
        *(
            Group((Workload(query, cache_share=share),), compared, ("high",), compared)
            for share in CACHES
        ),
        Group(
            (Workload(query, series="parts"),),
            (LRU, "asyncio-lru", *variants),
            ("high",),
            variants,
        ),
    )


def _left_out() -> tuple[str, ...]:
    others = ", ".join(key_of(query) for query in QUERIES if query not in QUICK_QUERIES)
    return (
        "off and clock; lru works off a backlog only, and asyncio has its cache",
        "the lower rate, 70 % of that at which lru works off a backlog",
        f"{others}, and direct reads",
        "skews, cache sizes, thresholds of hot keys, and the ablation",
    )
