"""Steps from Spark's own commit to all of it behind the query: what each changes, and gives. Pure.

Neighbours differ in what is named here and in nothing else, which a test holds them to.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec

from penstock.spark.session import FILE_MANAGER_KEY
from penstock_lab.experiment.figures import Figure, latency_p99, ordered, ratios
from penstock_lab.experiment.losses import beside
from penstock_lab.experiment.systems import (
    CHANGELOG_KEY,
    LOCAL_FILES_KEY,
    MODE_KEY,
    PROVIDER_KEY,
    SPARKS_BATCH,
)
from penstock_lab.percentiles import percentile
from penstock_lab.suites.commit.cells import (
    FILES,
    ON_FILES,
    PLUG_IN_SYNC,
    REPLICATED,
    ZSTREAM,
    Cell,
)
from penstock_lab.suites.commit.runs import Record

CHAIN = ("default", "tuned", FILES, "asyncckpt", "full")
CHAINS = (CHAIN, ON_FILES)
"""Between streams of the log, and between files with the jar alone."""


class Difference(msgspec.Struct, frozen=True):
    """A system's difference from its neighbour: in words, and the Spark settings that have it."""

    before: str
    system: str
    words: str
    keys: tuple[str, ...] = ()


DIFFERENCES = (
    Difference("default", "tuned", "a changelog instead of snapshots", (CHANGELOG_KEY,)),
    Difference("tuned", FILES, "no process for every rename on a local disk", (LOCAL_FILES_KEY,)),
    Difference(
        FILES,
        "asyncckpt",
        "state files copied behind the query, by our provider",
        (MODE_KEY, PROVIDER_KEY),
    ),
    Difference("asyncckpt", "full", "all of the commit behind the query", (MODE_KEY,)),
    Difference("full", REPLICATED, "the log in three copies"),
    Difference("default", ZSTREAM, "its policy cuts batches, not the trigger"),
    Difference(
        "tuned-files",
        PLUG_IN_SYNC,
        "the jar: no process for every rename on a local disk",
        (
            *(LOCAL_FILES_KEY, FILE_MANAGER_KEY, "spark.plugins", "spark.sql.extensions"),
            # The commit and batches are left to Spark; without the jar nobody reads these.
            *(MODE_KEY, *SPARKS_BATCH),
        ),
    ),
    Difference(
        PLUG_IN_SYNC,
        "plug-in",
        "all of the commit behind the query, by our provider",
        (MODE_KEY, PROVIDER_KEY),
    ),
)


def batch_p50(record: Record) -> float | None:
    return percentile(record.took_ms, 50)


VALUES: tuple[tuple[str, str, Callable[[Record], float | None]], ...] = (
    ("batch_p50_ratio", "median of batch time", batch_p50),
    ("event_p99_ratio", "p99 of event-time latency", latency_p99),
)


def steps_at(compared: Sequence[Record]) -> dict[Cell, list[Record]]:
    """Runs of chains by where they were made: `default` without a changelog, others with one."""
    in_chain = [
        msgspec.structs.replace(
            record, cell=msgspec.structs.replace(record.cell, has_changelog=True)
        )
        for record in compared
        if any(record.system in chain for chain in CHAINS)
        and record.cell.has_changelog is (record.system != "default")
    ]
    return {
        cell: [record for record in in_chain if record.cell == cell]
        for cell in ordered(record.cell for record in in_chain)
    }


def pairs(here: Sequence[Record]) -> list[tuple[str, str]]:
    """Each system of a chain that was run here, with the last one before it that was."""
    run = {record.system for record in here}
    return [
        pair
        for chain in CHAINS
        for pair in itertools.pairwise(name for name in chain if name in run)
    ]


def words_of(before: str, system: str) -> str:
    """Words for all that changes between two systems of a chain."""
    (chain,) = (chain for chain in CHAINS if before in chain)
    between = chain[chain.index(before) + 1 : chain.index(system) + 1]
    return "; ".join(
        difference.words
        for difference in DIFFERENCES
        if difference.system in between and difference.before in chain
    )


def step_figures(compared: Sequence[Record]) -> list[Figure]:
    """Gains of each step where both sides of it were run, taken within a repeat."""
    made = []
    for cell, here in steps_at(compared).items():
        for before, system in pairs(here):
            for key, measured, value in VALUES:
                sentence = (
                    f"{measured}, {before} over {system}: {words_of(before, system)}; "
                    f"{beside(before, system)}"
                )
                made += [
                    Figure(
                        f"{cell.base_name}.step.{system}.{key}",
                        "x",
                        sentence,
                        ratio.value,
                        ratio.repeats,
                    )
                    for ratio in ratios(here, (before,), system, value)
                ]
    return made
