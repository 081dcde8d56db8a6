"""Plans of the commit suite: the cells that a command line asks for, in full or in minutes."""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.experiment.plan import STORES, known
from penstock_lab.suites.commit.cells import (
    BACK_TO_BACK,
    LIGHT_RATE,
    MAIN_QUERIES,
    MAIN_RATE,
    PAPER_STORE,
    PAPER_TRIGGER_S,
    QUERIES,
    SLOW_STORE,
    SYSTEMS,
    WITH_CHANGELOG,
    WITHOUT,
    Cell,
    Group,
    Growth,
    Plan,
    Sustain,
)


def plan_of(
    *,
    quick: bool = False,
    queries: Sequence[str] = (),
    stores: Sequence[str] = (),
    chosen: Sequence[str] = (),
    rate: int | None = None,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not."""
    wanted, places, names = (
        known(given, choices, f"commit has no {kind} {{}}; it has", f"unknown_{kind}")
        for given, choices, kind in (
            (queries, QUERIES, "query"),
            (stores, STORES, "store"),
            (chosen, SYSTEMS, "system"),
        )
    )
    wanted = wanted or (MAIN_QUERIES if quick else QUERIES)
    places, names = places or STORES, names or SYSTEMS
    return _quick(wanted, places, names, rate) if quick else _full(wanted, places, names, rate)


def _quick(
    queries: tuple[str, ...], stores: tuple[str, ...], names: tuple[str, ...], rate: int | None
) -> Plan:
    cell_rate = rate or MAIN_RATE
    compared = tuple(
        Cell(query, store, BACK_TO_BACK, True, cell_rate)
        for store in stores
        for query in (queries if store != SLOW_STORE else queries[:1])
    )
    paper = PAPER_STORE if PAPER_STORE in stores else stores[0]
    as_paper = Cell(queries[-1], paper, PAPER_TRIGGER_S, False, cell_rate)
    grown = _growing(queries[:1], stores[0], cell_rate, names)
    held = Cell(queries[0], paper, BACK_TO_BACK, True, cell_rate)
    return Plan(
        _groups(
            [(("tuned", "full"), compared), (WITHOUT, (as_paper,))],
            names,
        ),
        repeats=3,
        measure_s=6.0,
        measure_batches=4,
        warm_up_s=2.0,
        first_warm_up_s=30.0,
        growth=Growth(grown, 100, 45.0, 5.0) if grown else None,
        sustain=Sustain((held,), tries_max=4, measure_s=10.0, warm_up_s=3.0)
        if {"tuned", "full"} <= set(names)
        else None,
        left_out=(
            f"on {SLOW_STORE} only {queries[0]}",
            f"with snapshots, and every {PAPER_TRIGGER_S:g} s, only {as_paper.query} on {paper}",
            "asyncckpt is run with snapshots only",
            f"{', '.join(name for name in QUERIES if name not in queries)}, and {LIGHT_RATE:,}/s",
            "growth and the highest rate that holds are found once, of one query each",
        ),
    )


def _full(
    queries: tuple[str, ...], stores: tuple[str, ...], names: tuple[str, ...], rate: int | None
) -> Plan:
    cell_rate = rate or MAIN_RATE
    light = () if rate else (LIGHT_RATE,)
    groups = []
    for has_changelog, ours in ((True, WITH_CHANGELOG), (False, WITHOUT)):
        for store in stores:
            cells = [
                Cell(query, store, every_s, has_changelog, cell_rate)
                for query in queries
                for every_s in (BACK_TO_BACK, PAPER_TRIGGER_S)
            ]
            cells += [
                Cell(query, store, PAPER_TRIGGER_S, has_changelog, low)
                for query in queries
                for low in light
                if store == PAPER_STORE
            ]
            groups.append((ours, tuple(cells)))
    main = tuple(query for query in queries if query in MAIN_QUERIES) or queries
    paper = PAPER_STORE if PAPER_STORE in stores else stores[0]
    grown = _growing(main, stores[0], cell_rate, names)
    held = tuple(Cell(query, paper, BACK_TO_BACK, True, cell_rate) for query in main)
    return Plan(
        _groups(groups, names),
        repeats=5,
        measure_s=30.0,
        measure_batches=20,
        warm_up_s=8.0,
        first_warm_up_s=60.0,
        growth=Growth(grown, 500, 300.0) if grown else None,
        sustain=Sustain(held) if {"tuned", "full"} <= set(names) else None,
        again_max=60,
    )


def _growing(
    queries: Sequence[str], store: str, rate: int, names: tuple[str, ...]
) -> tuple[tuple[str, Cell], ...]:
    return tuple(
        (name, Cell(query, store, BACK_TO_BACK, has_changelog, rate))
        for query in queries
        for name, has_changelog in (("full", True), ("default", False))
        if name in names
    )


def _groups(
    wanted: Sequence[tuple[tuple[str, ...], tuple[Cell, ...]]], names: tuple[str, ...]
) -> tuple[Group, ...]:
    """The groups of whose systems any was asked for, with those that were."""
    asked = [(tuple(name for name in ours if name in names), cells) for ours, cells in wanted]
    return tuple(Group(ours, cells) for ours, cells in asked if ours)
