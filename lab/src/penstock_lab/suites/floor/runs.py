"""Runs of the floor suite, in turns; each has a process of its own, or shares one with its like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from penstock_lab.experiment import worker
from penstock_lab.experiment.turns import Step, Steps, Tell, rotated
from penstock_lab.experiment.worker import Job
from penstock_lab.suites.floor.cells import SYSTEMS, Size

BATCH_WORKER = "penstock_lab.measure.micro_batches"
ABLATED_WORKER = "penstock_lab.measure.ablated_batches"
EVICT_WORKER = "penstock_lab.measure.evicting_batches"
LOG_WORKER = "penstock_lab.measure.log_floor"
RUN_TIMEOUT_S = 240.0
TURNS = "turns"
"""The name of a process with runs of one query that take turns."""
Record: TypeAlias = dict[str, Any]


def runs(size: Size, folder: Path, _tell: Tell) -> Steps[Record]:
    """Needs about 2 GB in the folder."""
    fetched = folder / "fetch"
    if size.has_floor:
        fetched.mkdir()
        fill = Job("fill", str(fetched), {"mb": size.fetch_mb})
        yield step(size, "filling the log", 0, worker.ask, LOG_WORKER, fill)
    for repeat in range(size.repeats):
        if size.has_floor:
            yield from floor_runs(size, folder, fetched, repeat)
        for query in size.ablated:
            yield from turn_runs(size, folder, query, repeat)


def floor_runs(size: Size, folder: Path, fetched: Path, repeat: int) -> Steps[Record]:
    """One repeat of the systems, of eviction and of the log alone."""
    batch_options = {
        "warm_up": size.warm_up,
        "batches": size.batches,
        "timeout_s": RUN_TIMEOUT_S / 2,
    }
    # Whoever runs first may find the machine cooler: they take turns in that too.
    for system in rotated(SYSTEMS, repeat):
        job = Job(system, str(folder / f"{system}-{repeat}"), batch_options)
        words = f"micro-batches on {system}"
        yield step(size, words, repeat, worker.ask_apart, BATCH_WORKER, job)
    evict_options = {
        "auctions": size.auctions,
        "warm_up": size.evict_warm_up,
        "batches": size.evict_batches,
    }
    evict = Job("evict", str(folder / f"evict-{repeat}"), evict_options)
    words = "batches with nothing to evict"
    yield step(size, words, repeat, worker.ask_apart, EVICT_WORKER, evict)
    append = Job("append", str(folder / f"append-{repeat}"))
    yield step(size, "durable appends", repeat, worker.ask_apart, LOG_WORKER, append)
    fetch = Job("fetch", str(fetched))
    yield step(size, "the log into Spark", repeat, worker.ask, LOG_WORKER, fetch)


def turn_runs(size: Size, folder: Path, query: str, repeat: int) -> Steps[Record]:
    """One repeat of a query with every mechanism at its default, and with one changed at a time."""
    for place, variants in enumerate(rotated(tuple(size.sessions), repeat)):
        options = {
            "query": query,
            "variants": rotated(variants, repeat),
            "warm_up": size.warm_up,
            "batches": size.turn_batches,
        }
        job = Job(TURNS, str(folder / f"{query}-{repeat}-{place}"), options)
        words = f"{query}, {len(variants)} runs in turns"
        timeout_s = RUN_TIMEOUT_S * (1 + len(variants))
        yield step(
            size, words, repeat, worker.ask_apart, ABLATED_WORKER, job, timeout_s, {"query": query}
        )


def step(
    size: Size,
    words: str,
    repeat: int,
    ask: Callable[..., Record],
    module: str,
    job: Job,
    timeout_s: float = RUN_TIMEOUT_S,
    about: Mapping[str, str] = MappingProxyType({}),
) -> Step[Record]:
    """One run; `about` stands in its record too."""

    def measure() -> Record:
        answer = ask(module, job, timeout_s)
        return {"system": job.system, **about, "repeat": repeat, **answer}

    return Step(f"{words}, {repeat + 1} of {size.repeats}", measure)
