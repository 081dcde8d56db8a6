"""Plans of the prefetch suite: what a command line asks for, quick or whole."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.plan import known
from penstock_lab.experiment.query_sets import key_of
from penstock_lab.queries.ads.ysb import REDIS
from penstock_lab.suites.prefetch.cells import (
    BATCHES_MIN,
    BATCHES_SPARE,
    CACHES,
    LOOKUP_QUERIES,
    MAIN_PARTS,
    OVERHEAD_QUERY,
    PARTS,
    QUERIES,
    QUICK_BATCHES_SPARE,
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
    asked = asked or (MAIN_PARTS if quick or names else PARTS)
    usual = QUICK_MODES if quick else FULL_MODES
    both = tuple(name for name in usual if name in ASYNCIO_OF)
    spelled = (both if name == ASYNCIO else (name,) for name in names)
    modes_given = tuple(dict.fromkeys(name for each in spelled for name in each))
    return Plan(
        (
            *_main(wanted, kinds, modes_given or usual, asked, quick=quick),
            *_sweeps(wanted, modes_given, asked),
        ),
        asked,
        repeats=3 if quick else 5,
        batches=BATCHES_MIN + (QUICK_BATCHES_SPARE if quick else BATCHES_SPARE),
        warm_batches=12 if quick else 20,
        seconds_max=45.0 if quick else 75.0,
        backlog_repeats=3,
        backlog_events=56_000 if quick else 80_000,
        overhead_turns=4 if quick else 9,
        overhead_events=80_000 if quick else 120_000,
        rate=rate,
        redis=redis,
        again_max=3 if quick else 30,
        left_out=_left_out(modes_given, asked) if quick else (),
    )


def _main(
    queries: Sequence[str],
    kinds: Sequence[str],
    modes: tuple[str, ...],
    parts: Sequence[str],
    *,
    quick: bool,
) -> tuple[Group, ...]:
    """The groups of the parts that are no sweeps: all at rates, else one process of ours."""
    groups = _groups(queries, kinds, modes, quick=quick)
    if "rates" in parts:
        return groups
    if not {*MAIN_PARTS} & {*parts} or OURS not in modes:
        return ()
    return (Group((Workload(OVERHEAD_QUERY, kinds[0]),), (OURS,), groups[0].levels, (OURS,)),)


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
            made.append(Group(workloads, modes, levels, rated, guests=_guests(modes, rated)))
    return tuple(made)


def _guests(modes: Sequence[str], rated: Sequence[str]) -> dict[str, str]:
    """`lru` in the process of the mode that has its cache and fetches, unless it is rated."""
    host = next((name for name, cache in ASYNCIO_OF.items() if cache == LRU), "")
    return {LRU: host} if LRU in modes and LRU not in rated and host in modes else {}


def _sweeps(
    queries: Sequence[str], modes: tuple[str, ...], parts: Sequence[str]
) -> tuple[Group, ...]:
    """Skews, cache sizes, thresholds and the ablation: of one query each, on declared reads."""
    query = next((name for name in queries if name in ROCKSDB_QUERIES), None)
    if query is None:
        return ()
    compared = modes or (LRU, "asyncio-lru", OURS)
    groups = [_swept("skews", [Workload(query, hot_share=share) for share in SKEWS], compared)]
    groups += [_swept("caches", [Workload(query, cache_share=share)], compared) for share in CACHES]
    hot = tuple(f"{OURS}-hot{threshold}" for threshold in THRESHOLDS)
    variants = {"thresholds": hot, "ablation": ABLATION}
    asked = [part for part in variants if part in parts]
    chosen = modes or (OURS, *(name for part in asked for name in variants[part]))
    rest = tuple(name for name in (LRU, "asyncio-lru") if name not in chosen)
    # One group for both: their rates and what they are compared with are the same.
    workloads = (Workload(query, series="parts"),)
    groups += [Group(workloads, (*rest, *chosen), ("high",), chosen, part) for part in asked[:1]]
    return tuple(group for group in groups if group.part in parts)


def _swept(part: str, workloads: Sequence[Workload], modes: tuple[str, ...]) -> Group:
    return Group(tuple(workloads), modes, ("high",), modes, part)


def _left_out(modes: Sequence[str], parts: Sequence[str]) -> tuple[str, ...]:
    others = ", ".join(key_of(query) for query in QUERIES if query not in QUICK_QUERIES)
    sentences = [f"{part}; --part {part} has it" for part in PARTS if part not in parts]
    if not modes:
        sentences += [
            "off and clock; lru works off a backlog once",
            "asyncio by clock: asyncio is asyncio-lru, and not the better of two caches",
        ]
    return (
        *sentences,
        "the lower rate, 70 % of that at which lru works off a backlog",
        f"{others}, and direct reads, unless they are asked for",
    )
