"""Plans of the paper suite: what a command line asks for, in full or in minutes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock_lab.experiment.plan import WarmUp, known
from penstock_lab.measure.log_sizes import JETSTREAM
from penstock_lab.measure.task_graph_runs import Fill
from penstock_lab.suites.paper import papers
from penstock_lab.suites.paper.cells import (
    CM1,
    LABELS,
    LR2,
    OURS,
    SYSTEMS,
    ZSTREAM,
    Batches,
    Graphs,
    Plan,
    Recovery,
    Search,
)
from penstock_lab.suites.protocols.cells import plan_of as protocols_plan

MISA, IMPELLER = "misa", "impeller"
RUNGS: dict[str, tuple[int, ...]] = {
    "q4": (500, 1_000, 2_000, 4_000, 8_000),
    "q8": (2_500, 5_000, 10_000, 20_000, 40_000),
}
FILL = Fill(120.0, 120.0)
"""Two minutes of events, and auctions that stay open as long."""
QUICK_SYSTEMS = ("default", ZSTREAM, OURS)
QUICK_RUN_S = 12.0
FULL_SEARCH = Search(1_500, 48_000, 8, 20)


def plan_of(
    *,
    quick: bool = False,
    papers_asked: Sequence[str] = (),
    queries: Sequence[str] = (),
    chosen: Sequence[str] = (),
    seconds: float | None = None,
    log: str = JETSTREAM,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not.
    `seconds` are those that each run of the task graphs is measured."""
    parts, labels, names = (
        known(given, choices, f"the suite has no {kind} {{}}; it has", code)
        for given, choices, kind, code in (
            (papers_asked, (MISA, IMPELLER), "paper", "bad_request"),
            (queries, tuple(map(str.lower, LABELS.values())), "query", "unknown_query"),
            (chosen, SYSTEMS, "system", "unknown_system"),
        )
    )
    wanted = tuple(name for name in (CM1, LR2) if not labels or LABELS[name].lower() in labels)
    usual = QUICK_SYSTEMS if quick else SYSTEMS
    ordered = tuple(name for name in SYSTEMS if name in (names or usual))
    parts = parts or (MISA, IMPELLER)
    batches = _quick_batches(wanted, ordered) if quick else _full_batches(wanted, ordered)
    graphs = (
        _quick_graphs(log, seconds or QUICK_RUN_S)
        if quick
        else _full_graphs(log, seconds or papers.RUN_S)
    )
    return Plan(
        batches if MISA in parts else None,
        graphs if IMPELLER in parts else None,
        _left_out(batches, graphs) if quick else (),
    )


def _full_batches(queries: tuple[str, ...], names: tuple[str, ...]) -> Batches:
    return Batches(
        queries,
        papers.RATES,
        names,
        repeats=3,
        batches=papers.BATCHES,
        warm_up=3,
        process_warm_up=WarmUp(300.0, 100, 20.0),
        calibration=40,
        search=FULL_SEARCH,
        again_max=20,
    )


def _quick_batches(queries: tuple[str, ...], names: tuple[str, ...]) -> Batches:
    return Batches(
        queries,
        papers.RATES[:1],
        names,
        repeats=1,
        batches=30,
        warm_up=3,
        process_warm_up=WarmUp(90.0, 30, 10.0),
        calibration=8,
        search=msgspec.structs.replace(FULL_SEARCH, tries_max=3, batches=8),
        lr2_systems=("default", OURS),
        again_max=2,
    )


def _full_graphs(log: str, measure_s: float) -> Graphs:
    protocols = protocols_plan(log=log)
    return Graphs(
        msgspec.structs.replace(
            protocols, repeats=3, measure_s=measure_s, warm_up_s=10.0, fill=FILL
        ),
        RUNGS,
        rule_s=60.0,
        recovery=Recovery(papers.RECOVER_S, papers.RECOVER_RATE, recoveries=5),
    )


def _quick_graphs(log: str, measure_s: float) -> Graphs:
    protocols = protocols_plan(quick=True, intervals_ms=(10,), log=log)
    return Graphs(
        msgspec.structs.replace(
            protocols, repeats=1, measure_s=measure_s, warm_up_s=2.0, fill=FILL
        ),
        {query: rates[1:4] for query, rates in RUNGS.items()},
        rule_s=4.0,
        recovery=Recovery(100, papers.RECOVER_RATE),
    )


def _left_out(batches: Batches, graphs: Graphs) -> tuple[str, ...]:
    seconds = graphs.protocols.measure_s
    lasts = f"of {papers.RUN_S:g} s, here {seconds:g} s, " if seconds < papers.RUN_S else ""
    sentences = [
        f"repeats: every run is made once, with {batches.batches} batches of {papers.BATCHES}",
        f"CM1 at {papers.RATES[1]:,}/s; the system asyncckpt; LR2 on zstream",
        "the rate of LR2 found in more and longer steps",
        f"runs of the task graphs {lasts}at intervals other than 10 ms",
    ]
    if graphs.recovery is not None:
        recovery_s = graphs.recovery.seconds
        sentences.append(f"recovery after {papers.RECOVER_S} s of changes, here {recovery_s} s")
    return tuple(sentences)
