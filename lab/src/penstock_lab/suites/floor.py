"""The floor suite: what the log adds to the least a stateful micro-batch can cost.

Spark and Penstock take turns, each run in a process and folders of its own, so that neither a slow
minute of the machine nor what the other left in memory falls on one of them only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table

from penstock_lab.experiment import worker
from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.experiment.suite import Suite
from penstock_lab.experiment.table import show_figures
from penstock_lab.experiment.turns import Step, Steps, Tell, rotated
from penstock_lab.experiment.worker import Job
from penstock_lab.measure import evicting_batches, log_floor, micro_batches
from penstock_lab.percentiles import median

BATCH_WORKER = "penstock_lab.measure.micro_batches"
EVICT_WORKER = "penstock_lab.measure.evicting_batches"
LOG_WORKER = "penstock_lab.measure.log_floor"
SYSTEMS = ("spark", "spark+switches", "penstock")
Record: TypeAlias = dict[str, Any]
RUN_TIMEOUT_S = 240.0


class Size(msgspec.Struct, frozen=True):
    """How much is run; the quick one differs in repeats only, so that figures stay comparable."""

    repeats: int
    batches: int = 100
    warm_up: int = 20
    fetch_mb: int = 512
    auctions: int = 200_000
    evict_batches: int = 20
    evict_warm_up: int = 5


QUICK = Size(repeats=3)
FULL = Size(repeats=5)


def plan_of(*, quick: bool = False) -> Size:
    return QUICK if quick else FULL


def steps(size: Size) -> int:
    return 1 + (len(SYSTEMS) + 3) * size.repeats


def runs(size: Size, folder: Path, _tell: Tell) -> Steps[Record]:
    """Needs about 2 GB in the folder."""
    fetched = folder / "fetch"
    fetched.mkdir()
    fill = Job("fill", str(fetched), {"mb": size.fetch_mb})
    yield step(size, "filling the log", 0, worker.ask, LOG_WORKER, fill)
    batch_options = {
        "warm_up": size.warm_up,
        "batches": size.batches,
        "timeout_s": RUN_TIMEOUT_S / 2,
    }
    for repeat in range(size.repeats):
        # Whoever runs first may find the machine cooler: they take turns in that too.
        for system in rotated(SYSTEMS, repeat):
            job = Job(system, str(folder / f"{system}-{repeat}"), batch_options)
            words = f"micro-batches on {system}"
            yield step(size, words, repeat, worker.ask_apart, BATCH_WORKER, job)
        evict = Job(
            "evict",
            str(folder / f"evict-{repeat}"),
            {
                "auctions": size.auctions,
                "warm_up": size.evict_warm_up,
                "batches": size.evict_batches,
            },
        )
        yield step(
            size, "batches with nothing to evict", repeat, worker.ask_apart, EVICT_WORKER, evict
        )
        append = Job("append", str(folder / f"append-{repeat}"))
        yield step(size, "durable appends", repeat, worker.ask_apart, LOG_WORKER, append)
        fetch = Job("fetch", str(fetched))
        yield step(size, "the log into Spark", repeat, worker.ask, LOG_WORKER, fetch)


def step(
    size: Size, words: str, repeat: int, ask: Callable[..., Record], module: str, job: Job
) -> Step[Record]:
    def measure() -> Record:
        answer = ask(module, job, RUN_TIMEOUT_S)
        return {"system": job.system, "repeat": repeat, **answer}

    return Step(f"{words}, {repeat + 1} of {size.repeats}", measure)


def settings(size: Size) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(size),
        "rows": micro_batches.ROWS,
        "keys": micro_batches.KEYS,
        "partitions": micro_batches.PARTITIONS,
        "master": micro_batches.MASTER,
        "spark": micro_batches.CONF,
        "evict_keys": evicting_batches.WINDOWS * size.auctions,
        "evict_rows": evicting_batches.ROWS,
        "append_bytes": log_floor.APPEND_BYTES,
        "entry_bytes": log_floor.ENTRY_BYTES,
        "row_bytes": log_floor.ROW_BYTES,
    }


def figures(size: Size, records: Sequence[Record]) -> list[Figure]:
    """The figures of all repeats. What Penstock adds is taken within each repeat, then its median:
    runs that were neighbours in time are compared, not the luckiest of each kind."""
    spark, switched, ours = (_by_repeat(records, system, "trigger_ms_p50") for system in SYSTEMS)
    over = [ours[repeat] - spark[repeat] for repeat in spark if repeat in ours]
    times = [spark[repeat] / ours[repeat] for repeat in spark if repeat in ours]
    explained, requests, visible = (
        _by_repeat(records, "penstock", key).values()
        for key in ("explained", "requests", "visible_ms_p50")
    )
    scanned, skipped = (
        _by_repeat(records, "evict", f"evict_{side}_ms_p50") for side in evicting_batches.SIDES
    )
    spared = [scanned[repeat] / skipped[repeat] for repeat in scanned if repeat in skipped]
    appends = _by_repeat(records, "append", "append_ms_p50")
    fetches = _by_repeat(records, "fetch", "fetch_mb_per_s")
    return [
        figure
        for name, unit, what, repeats, goal in (
            ("spark_ms_p50", "ms", "stateful batch, Spark's rate source, no sink",
             spark.values(), None),
            ("spark_switches_ms_p50", "ms", "the same with the settings that our sessions make",
             switched.values(), None),
            ("penstock_ms_p50", "ms", "same batch from the log, committed to the log",
             ours.values(), None),
            ("headline.over_spark_ms", "ms", "what the log and its commit add",
             over, Goal("at most", 40)),
            ("headline.vs_spark", "x", "Spark's batch over ours",
             times, Goal("at least", 2)),
            ("headline.ledger_explained", "", "share of a batch that its ledger explains",
             explained, Goal("at least", 0.9)),
            ("headline.requests_per_batch", "", "requests of driver and executors per batch",
             requests, Goal("at most", 4)),
            ("headline.visible_after_batch_ms_p50", "ms", "end of a batch to its marker",
             visible, Goal("at most", 10)),
            ("evict.spark_ms_p50", "ms", "batch over a million keys of state, nothing expired",
             scanned.values(), None),
            ("evict.ours_ms_p50", "ms", "the same without a scan for eviction",
             skipped.values(), None),
            ("evict.batch_ratio", "x", "the one over the other",
             spared, Goal("at least", 4)),
            ("append_ms_p50", "ms", "durable append of 100 KB from Python",
             appends.values(), Goal("under", 3)),
            ("fetch_mb_per_s", "MB/s", "one substream into Spark",
             fetches.values(), Goal("over", 200)),
        )
        for figure in middle(name, unit, what, repeats, goal)
    ]  # fmt: skip


def _by_repeat(records: Sequence[Record], system: str, key: str) -> dict[int, float]:
    mine = [record for record in records if record["system"] == system]
    ordered = sorted(mine, key=lambda record: int(record["repeat"]))
    return {record["repeat"]: float(record[key]) for record in ordered if key in record}


def phases(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Per phase of a batch its median over the repeats, for Spark and for Penstock."""
    named: dict[str, dict[str, list[float]]] = {}
    for record in records:
        for phase, value in record.get("phases_ms", {}).items():
            named.setdefault(phase, {}).setdefault(record["system"], []).append(value)
    return {
        phase: {system: median(values) or 0.0 for system, values in by_system.items()}
        for phase, by_system in named.items()
    }


def show(
    console: Console, size: Size, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    show_figures(console, f"floor, medians of {size.repeats} repeats", figures)
    table = Table(
        title="where a batch's time goes, ms (medians)",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    table.add_column("phase")
    for system in SYSTEMS:
        table.add_column(system, justify="right")
    for phase, by_system in phases(records).items():
        table.add_row(phase, *(f"{by_system.get(system, 0):,.0f}" for system in SYSTEMS))
    console.print(table)
    console.print(ledger_table(records))


def ledger_table(records: Sequence[Record]) -> Table:
    """Medians of the ledgers of our batches: on the stream's thread, and within tasks."""
    ours = [record for record in records if "wall_ms" in record]
    table = Table(
        title="the ledger of our batch (medians)",
        box=box.SIMPLE_HEAD,
        title_justify="left",
        pad_edge=False,
    )
    for head in ("on the stream's thread", "ms"), ("in tasks, summed", "ms"), ("counted", ""):
        table.add_column(head[0])
        table.add_column(head[1], justify="right")
    columns = [
        [
            (step, median([record[part][step] for record in ours if step in record[part]]) or 0.0)
            for step in (ours[0][part] if ours else {})
        ]
        for part in ("wall_ms", "task_ms", "counters")
    ]
    for steps in zip_longest(*columns, fillvalue=None):
        table.add_row(
            *(text for step in steps for text in (("", "") if step is None else _shown(*step)))
        )
    return table


def _shown(step: str, value: float) -> tuple[str, str]:
    return step, f"{value:,.1f}" if value < 10 else f"{value:,.0f}"


SUITE: Suite[Size, Record] = Suite(
    name="floor",
    plan_of=plan_of,
    steps=steps,
    runs=runs,
    figures=figures,
    settings=settings,
    in_file=lambda record: record,
    show=show,
)
