"""Figures of the floor suite from its runs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from penstock_lab.experiment.figures import Figure, Goal, middle
from penstock_lab.experiment.losses import beside
from penstock_lab.measure import evicting_batches
from penstock_lab.measure.ablated_batches import FLOOR
from penstock_lab.measure.mechanisms import OURS
from penstock_lab.percentiles import median
from penstock_lab.suites.floor.cells import SYSTEMS, Size
from penstock_lab.suites.floor.runs import TURNS, Record

EXPLAINED_MIN = Goal("at least", 0.9)


def figures(size: Size, records: Sequence[Record]) -> list[Figure]:
    """The figures of all repeats. What Penstock adds is taken within each repeat, then its median:
    runs that were neighbours in time are compared, not the luckiest of each kind."""
    return [
        *floor_figures(records),
        *(figure for query in size.queries for figure in query_figures(query, size, records)),
    ]


def floor_figures(records: Sequence[Record]) -> list[Figure]:
    spark, switched, ours = (_by_repeat(records, system, "trigger_ms_p50") for system in SYSTEMS)
    over = [ours[repeat] - spark[repeat] for repeat in spark if repeat in ours]
    times = [spark[repeat] / ours[repeat] for repeat in spark if repeat in ours]
    explained, requests, visible = (
        _by_repeat(records, OURS, key).values()
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
        for name, unit, sentence, repeats, goal in (
            ("spark_ms_p50", "ms", "stateful batch, Spark's rate source, no sink",
             spark.values(), None),
            ("spark_switches_ms_p50", "ms", "the same with the settings that our sessions make",
             switched.values(), None),
            ("penstock_ms_p50", "ms", "same batch from the log, committed to the log",
             ours.values(), None),
            ("headline.over_spark_ms", "ms", "what the log and its commit add",
             over, Goal("at most", 40)),
            ("headline.vs_spark", "x", f"Spark's batch over ours; {beside('spark', OURS)}",
             times, Goal("at least", 2)),
            ("headline.ledger_explained", "", "share of a batch that is measured step by step",
             explained, EXPLAINED_MIN),
            ("headline.requests_per_batch", "",
             "requests of driver and tasks per batch, which share one JVM here",
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
        for figure in middle(name, unit, sentence, repeats, goal)
    ]  # fmt: skip


def query_figures(query: str, size: Size, records: Sequence[Record]) -> list[Figure]:
    """The batch of a query, its ledger, and the batch without each mechanism, or with it."""
    ours = runs_of(query, OURS, records)
    whole_ms = {repeat: run["trigger_ms_p50"] for repeat, run in ours.items()}
    made = middle(
        f"{query}.penstock_ms_p50", "ms", "batch, every mechanism at its default", whole_ms.values()
    )
    for name in size.changed:
        word, sign = ("with", -1) if name in size.added else ("without", 1)
        other_ms = {
            repeat: run["trigger_ms_p50"] for repeat, run in runs_of(query, name, records).items()
        }
        both = [repeat for repeat in other_ms if repeat in whole_ms]
        gives_ms = [sign * (other_ms[repeat] - whole_ms[repeat]) for repeat in both]
        sentence = f"the same {word} {name}"
        made += middle(f"{query}.{word}.{name}_ms_p50", "ms", sentence, other_ms.values())
        sentence = f"what {name} takes off the batch"
        made += middle(f"{query}.gives.{name}_ms", "ms", sentence, gives_ms)
    for step in steps_of(ours.values(), "wall_ms"):
        values = [run["wall_ms"].get(step, 0.0) for run in ours.values()]
        sentence = f"of its ledger, {step}"
        made += middle(f"{query}.step.{step.replace(' ', '_')}_ms", "ms", sentence, values)
    explained = [run["explained"] for run in ours.values()]
    sentence = "share of the batch that is measured step by step"
    return [*made, *middle(f"{query}.ledger_explained", "", sentence, explained, EXPLAINED_MIN)]


def runs_of(query: str, variant: str, records: Sequence[Record]) -> dict[int, Mapping[str, Any]]:
    """Runs of a query that differ in a mechanism, by repeat. Of the floor query with all at their
    default: those that take turns with it, else those that take turns with Spark."""
    turns = {
        record["repeat"]: record["variants"][variant]
        for record in records
        if record["system"] == TURNS and record["query"] == query and variant in record["variants"]
    }
    if turns or query != FLOOR or variant != OURS:
        return turns
    return {record["repeat"]: record for record in records if record["system"] == OURS}


def steps_of(runs: Iterable[Mapping[str, Any]], part: str) -> list[str]:
    """Names of the steps of some ledgers, in their order."""
    return list(dict.fromkeys(step for run in runs for step in run.get(part, {})))


def step_medians(runs: Sequence[Mapping[str, Any]], part: str) -> list[tuple[str, float]]:
    """Medians of the steps over the runs that have them."""
    ledgers = [run.get(part, {}) for run in runs]
    return [
        (step, median([ledger[step] for ledger in ledgers if step in ledger]) or 0.0)
        for step in steps_of(runs, part)
    ]


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
