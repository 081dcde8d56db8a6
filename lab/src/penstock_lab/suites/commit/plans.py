"""Plans of the commit suite: the cells that a command line asks for, in full or in minutes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock_lab.experiment.plan import LOCAL, STORES, WarmUp, known
from penstock_lab.suites.commit.cells import (
    BACK_TO_BACK,
    FILES,
    LIGHT_RATE,
    MAIN_QUERIES,
    MAIN_RATE,
    ON_FILES,
    PAPER_STORE,
    PAPER_TRIGGER_S,
    PLUG_IN_SYNC,
    QUERIES,
    REPLICATED,
    SLOW_STORE,
    SYSTEMS,
    WITH_CHANGELOG,
    WITHOUT,
    ZSTREAM,
    Cell,
    Group,
    Growth,
    Plan,
    Sustain,
)

GROWING = (("full", True), ("default", False))
"""Systems of the long runs, and whether each has a changelog."""


def plan_of(
    *,
    quick: bool = False,
    queries: Sequence[str] = (),
    stores: Sequence[str] = (),
    chosen: Sequence[str] = (),
    rate: int | None = None,
    has_log_servers: bool = True,
) -> Plan:
    """The plan of a command line; raises BadCall, with what there is, for a name that is not.

    Where there are no log servers to be had, the system that needs them is left out, unless it was
    asked for by name.
    """
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
    is_left_out = not has_log_servers and not chosen
    if is_left_out:
        names = tuple(name for name in names if name != REPLICATED)
    if quick:
        plan = _quick(wanted, places, names, rate, has_pace=ZSTREAM in chosen)
    else:
        plan = _full(wanted, places, names, rate)
    if not is_left_out:
        return plan
    sentence = f"{REPLICATED}: there is no nats-server here, and its log needs three"
    return msgspec.structs.replace(plan, left_out=(*plan.left_out, sentence))


def _quick(
    queries: tuple[str, ...],
    stores: tuple[str, ...],
    names: tuple[str, ...],
    rate: int | None,
    *,
    has_pace: bool,
) -> Plan:
    """In twenty minutes. Batches every few seconds (`has_pace`) are the paper suite's, and run here
    only where the system was asked for that needs them."""
    cell_rate = rate or MAIN_RATE
    compared = tuple(
        Cell(query, store, BACK_TO_BACK, True, cell_rate)
        for store in stores
        for query in (queries if store != SLOW_STORE else queries[:1])
    )
    local = tuple(cell for cell in compared if cell.store == LOCAL)
    remote = tuple(cell for cell in compared if cell.store != LOCAL)
    paper = PAPER_STORE if PAPER_STORE in stores else stores[0]
    as_paper = Cell(queries[-1], paper, PAPER_TRIGGER_S, False, cell_rate)
    as_it_comes = Cell(queries[0], stores[0], BACK_TO_BACK, False, cell_rate)
    grown = _growing(queries[:1], stores[0], cell_rate, names, GROWING[:1])
    paced = (as_paper,) if has_pace else ()
    return Plan(
        _groups(
            [
                Group(("tuned", FILES, "asyncckpt", "full"), local, (("asyncckpt", local[:1]),)),
                Group(("tuned", "full", REPLICATED), remote, ((REPLICATED, remote[:1]),)),
                Group(("default", ZSTREAM, "full"), (as_it_comes, *paced), (("full", paced),)),
                Group(ON_FILES, local[:1]),
            ],
            names,
        ),
        repeats=3,
        measure_s=6.0,
        measure_batches=3,
        warm_up=WarmUp(40.0, 10, 3.0),
        first_warm_up=WarmUp(120.0, 40, 3.0),
        growth=Growth(grown, 100, 40.0, WarmUp(30.0, 20)) if grown else None,
        left_out=(
            f"on {SLOW_STORE} only {queries[0]}",
            (
                f"default only with {queries[0]} on {stores[0]}; batches every "
                f"{PAPER_TRIGGER_S:g} s, and {ZSTREAM}, which needs them"
            ),
            (
                f"{', '.join(('asyncckpt', *ON_FILES))} only with {queries[0]} on {LOCAL}, "
                f"{REPLICATED} only with it on {paper}"
            ),
            f"{', '.join(name for name in QUERIES if name not in queries)}, and {LIGHT_RATE:,}/s",
            "growth of full is measured once, of one query; no highest rate that holds",
        ),
    )


def _full(
    queries: tuple[str, ...], stores: tuple[str, ...], names: tuple[str, ...], rate: int | None
) -> Plan:
    cell_rate = rate or MAIN_RATE
    main = tuple(query for query in queries if query in MAIN_QUERIES) or queries
    groups = []
    for has_changelog in (True, False):
        for store in stores:
            cells = _all_cells(queries, store, has_changelog, rate)
            hurried = tuple(cell for cell in cells if cell.is_back_to_back)
            if has_changelog:
                limits = ((FILES, cells if store == LOCAL else ()), (REPLICATED, hurried))
                groups.append(Group(WITH_CHANGELOG, cells, limits))
            else:
                groups.append(Group(WITHOUT, cells))
    for store in stores:
        cells = tuple(Cell(query, store, BACK_TO_BACK, True, cell_rate) for query in main)
        of_files = ((PLUG_IN_SYNC, cells if store == LOCAL else ()),)
        groups.append(Group(ON_FILES, cells, of_files))
    paper = PAPER_STORE if PAPER_STORE in stores else stores[0]
    grown = _growing(main, stores[0], cell_rate, names, GROWING)
    held = tuple(Cell(query, paper, BACK_TO_BACK, True, cell_rate) for query in main)
    return Plan(
        _groups(groups, names),
        repeats=5,
        measure_s=30.0,
        measure_batches=20,
        warm_up=WarmUp(120.0, 30, 8.0),
        first_warm_up=WarmUp(600.0, 200, 8.0),
        paced_warm_up=WarmUp(60.0, 7, 20.0),
        growth=Growth(grown, 500, 300.0) if grown else None,
        sustain=Sustain(held) if {"tuned", "full"} <= set(names) else None,
        again_max=60,
    )


def _all_cells(
    queries: tuple[str, ...], store: str, has_changelog: bool, rate: int | None
) -> tuple[Cell, ...]:
    """Every query at both paces, and on one store at a lower rate too."""
    paces = [(rate or MAIN_RATE, every_s) for every_s in (BACK_TO_BACK, PAPER_TRIGGER_S)]
    if store == PAPER_STORE and not rate:
        paces.append((LIGHT_RATE, PAPER_TRIGGER_S))
    return tuple(
        Cell(query, store, every_s, has_changelog, cell_rate)
        for query in queries
        for cell_rate, every_s in paces
    )


def _growing(
    queries: Sequence[str],
    store: str,
    rate: int,
    names: tuple[str, ...],
    growing: Sequence[tuple[str, bool]],
) -> tuple[tuple[str, Cell], ...]:
    return tuple(
        (name, Cell(query, store, BACK_TO_BACK, has_changelog, rate))
        for query in queries
        for name, has_changelog in growing
        if name in names
    )


def _groups(wanted: Sequence[Group], names: tuple[str, ...]) -> tuple[Group, ...]:
    """The groups of whose systems any was asked for, with those that were, where they are run."""
    groups = []
    for group in wanted:
        asked = tuple(name for name in group.systems if name in names)
        group = msgspec.structs.replace(group, systems=asked)
        cells = tuple(cell for cell in group.cells if group.systems_at(cell))
        used = tuple(name for name in asked if any(name in group.systems_at(c) for c in cells))
        if cells:
            groups.append(msgspec.structs.replace(group, systems=used, cells=cells))
    return tuple(groups)
