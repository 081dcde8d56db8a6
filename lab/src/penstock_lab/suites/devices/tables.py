"""Tables and sentences of the devices suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from penstock_lab.experiment.device_plans import ways_in_words
from penstock_lab.experiment.figures import Figure, ordered
from penstock_lab.experiment.table import (
    Column,
    Figures,
    bare_table,
    show_legend,
    show_not_counted,
    show_summary,
    systems_table,
    value,
)
from penstock_lab.suites.devices.cells import Cell
from penstock_lab.suites.devices.headlines import IN_WORKERS
from penstock_lab.suites.devices.machine_figures import size_name
from penstock_lab.suites.devices.modes import MODES, THROUGHPUT_ORIENTED, THROUGHPUT_PANES
from penstock_lab.suites.devices.plans import Asked
from penstock_lab.suites.devices.records import (
    InflectionRecord,
    OperationRecord,
    Record,
    SparkRecord,
    on_spark,
)

LEGEND = (
    "mean: ms from an input row's intended send to its batch's marker; batch: ms from a batch's "
    "cut to its marker, in the mean; rows: of a batch; workers: % of batches on the columnar path; "
    "gpu: % of batches of which a task ran an operation there"
)
ALL_GPU = (THROUGHPUT_ORIENTED, THROUGHPUT_PANES)
ON_GPU_MIN = 0.5


def percent(name: str, key: str) -> Column:
    def text(figures: Figures, cell: Cell, mode: str) -> str:
        figure = figures.get(f"{cell.name}.{mode}.{key}")
        return "-" if figure is None else f"{100 * figure.value:.0f}"

    return Column(name, text)


COLUMNS = (
    Column("mean", value("mean_ms")),
    Column("batch", value("batch_ms")),
    Column("rows", value("batch_rows")),
    percent("workers", "columnar_share"),
    percent("gpu", "gpu_share"),
)


def show(
    console: Console, asked: Asked, records: Sequence[Record], figures: Sequence[Figure]
) -> None:
    """Operations by size, inflection points, latencies by workload and mode, then the headline."""
    show_operations(console, [r for r in records if isinstance(r, OperationRecord)])
    show_inflections(console, [r for r in records if isinstance(r, InflectionRecord)], figures)
    compared = on_spark(records, "compared")
    if compared:
        title = "devices: workloads on Spark"
        console.print(
            systems_table(title, "cell and mode", COLUMNS, tuple(MODES), compared, figures)
        )
        show_legend(console, LEGEND)
    if records:
        show_summary(console, "devices", figures)
    sentences = (
        *fallbacks(compared),
        *off_the_gpu(compared),
        *without_workers(compared),
        *unfinished(asked, records),
    )
    for sentence in (*sentences, *asked.notes):
        console.print(Text(sentence, "yellow"), soft_wrap=True)
    show_not_counted(console, compared)
    if asked.plan.skipped is not None:
        sentence = f"devices: skipped, because {asked.plan.skipped}"
        console.print(Text(sentence, "yellow"), soft_wrap=True)


def show_operations(console: Console, records: Sequence[OperationRecord]) -> None:
    """A line for every operation and device, a column for every size; of repeats the last."""
    last = {record.kind: record for record in records if record.sizes}
    for record in records:
        if record.reason:
            console.print(f"{record.kind} was not measured: {record.reason}", soft_wrap=True)
    if not last:
        return
    sizes = ordered(each.bytes for record in last.values() for each in record.sizes)
    table = bare_table("ms of an operation, by the size of its input")
    table.add_column("operation", no_wrap=True)
    for size in sizes:
        table.add_column(size_name(size), justify="right", no_wrap=True)
    for kind, record in last.items():
        by_size = {each.bytes: each for each in record.sizes}
        for place, (name, ms) in enumerate(
            (
                (f"{kind}, cpu", {size: each.cpu_ms for size, each in by_size.items()}),
                ("  gpu", {size: each.gpu_ms for size, each in by_size.items()}),
                ("  transfer", {size: each.transfer_ms for size, each in by_size.items()}),
            )
        ):
            texts = (f"{ms[size]:.3g}" if size in ms else "-" for size in sizes)
            table.add_row(name, *texts, end_section=place == 2)
    console.print(table)
    console.print()


def show_inflections(
    console: Console, records: Sequence[InflectionRecord], figures: Sequence[Figure]
) -> None:
    if not records:
        return
    by_name = {figure.name: figure.value for figure in figures}
    keys = ("measured", "ours_from_high", "ours_from_low", "lmstream_from_high",
            "lmstream_from_low")  # fmt: skip
    table = bare_table("inflection points in KB: measured, and learned from starts 10x off")
    table.add_column("operation", no_wrap=True)
    for key in keys:
        table.add_column(key.replace("_from_", "\n"), justify="right")
    for kind in ordered(record.kind for record in records):
        values = (by_name.get(f"inflection.{kind}.{key}_kb") for key in keys)
        table.add_row(kind, *("-" if each is None else f"{each:,.0f}" for each in values))
    console.print(table)
    for record in records:
        if record.reason:
            console.print(f"{record.kind}: no point was learned: {record.reason}", soft_wrap=True)
    console.print()


def fallbacks(compared: Sequence[SparkRecord]) -> list[str]:
    """A sentence for every workload and mode with tasks that could not have the GPU, by cause."""
    sentences = []
    for workload, mode in ordered((r.cell.workload, r.system) for r in compared):
        tasks: Counter[str] = Counter()
        for record in compared:
            if (record.cell.workload, record.system) == (workload, mode) and record.planned:
                tasks.update(record.planned.fallbacks)
        if tasks:
            causes = ", ".join(f"{cause} {count}" for cause, count in tasks.most_common())
            sentences.append(
                f"{workload}, {mode}: tasks planned for the GPU ran on the CPU: {causes}"
            )
    return sentences


def off_the_gpu(compared: Sequence[SparkRecord]) -> list[str]:
    """A sentence for every workload and mode that was to be on the GPU whole and was not."""
    sentences = []
    for workload, mode in ordered((r.cell.workload, r.system) for r in compared):
        mine = [r for r in compared if (r.cell.workload, r.system) == (workload, mode)]
        if mode not in ALL_GPU or all(is_on_gpu(record) for record in mine):
            continue
        ways = [r.planned.ways for r in mine if r.planned is not None]
        names = ordered(way for each in ways for way in each)
        shares = {way: sum(each.get(way, 0.0) for each in ways) / len(ways) for way in names}
        taken = ways_in_words(shares)
        notes = "; ".join(ordered(note for r in mine for note in r.plan_notes))
        sentences.append(
            f"{workload}, {mode}: not all of it ran on the GPU: {taken or 'nothing was planned'}"
            + (f" ({notes})" if notes else "")
        )
    return sentences


def without_workers(compared: Sequence[SparkRecord]) -> list[str]:
    """A sentence for every cell at which a mode that differs in devices only had none to choose."""
    sentences = []
    for cell in ordered(r.cell for r in compared):
        left_out = [r for r in compared if r.cell == cell and not r.columnar_share]
        modes = ordered(r.system for r in left_out if r.system in IN_WORKERS)
        if modes:
            sentences.append(
                f"{cell.name}: no batch of {', '.join(modes)} went to workers, so that devices are "
                "not compared there: headline.vs_static and headline.vs_lmstream_min are without it"
            )
    return sentences


def is_on_gpu(record: SparkRecord) -> bool:
    """Whether most of its batches were on the GPU whole; that there is one is known after some."""
    return record.planned is not None and record.planned.ways.get("gpu", 0.0) >= ON_GPU_MIN


def unfinished(asked: Asked, records: Sequence[Record]) -> list[str]:
    """A sentence on the runs for which no time was left."""
    plan = asked.plan
    if plan.minutes_max is None or plan.skipped is not None:
        return []
    made = len(records) - len(asked.earlier)
    if made >= plan.steps:
        return []
    return [
        (
            f"{plan.minutes_max:g} minutes were enough for {made} of up to {plan.steps} runs; the "
            "others can follow in a command of their own, with this one's file as --merge"
        )
    ]
