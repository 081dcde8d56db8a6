"""Cells of the floor suite: systems, queries, mechanisms left out, and how much is run."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.errors import BadCall
from penstock_lab.measure import ablated_batches, evicting_batches, log_floor, micro_batches
from penstock_lab.measure.ablated_batches import FLOOR
from penstock_lab.measure.mechanisms import CHANGED, added, named, sessions_of

SYSTEMS = ("spark", "spark+switches", "penstock")
QUERIES = tuple(ablated_batches.QUERIES)


class Size(msgspec.Struct, frozen=True):
    """The size of a run; the quick one differs in repeats only, so that figures stay comparable."""

    repeats: int
    batches: int = 100
    warm_up: int = 20
    fetch_mb: int = 512
    auctions: int = 200_000
    evict_batches: int = 20
    evict_warm_up: int = 5
    queries: tuple[str, ...] = (FLOOR,)
    without: tuple[str, ...] = ()
    """Mechanisms, each of which every query is run without."""
    added: tuple[str, ...] = ()
    """Mechanisms that are off by default, with each of which every query is run."""
    turn_batches: int = 40
    """Measured batches of a run with all mechanisms, or with all but one."""

    @property
    def has_floor(self) -> bool:
        return FLOOR in self.queries

    @property
    def changed(self) -> tuple[str, ...]:
        return (*self.without, *self.added)

    @property
    def ablated(self) -> tuple[str, ...]:
        """Queries whose runs take turns; the floor query alone has its ledger from the runs that
        Spark's take turns with."""
        return tuple(name for name in self.queries if name != FLOOR or self.changed)

    @property
    def sessions(self) -> list[tuple[str, ...]]:
        """The runs of one such query in one repeat, by the process they share."""
        return sessions_of(self.changed)

    @property
    def steps(self) -> int:
        floor = 1 + (len(SYSTEMS) + 3) * self.repeats if self.has_floor else 0
        return floor + len(self.ablated) * len(self.sessions) * self.repeats


QUICK = Size(repeats=3)
FULL = Size(repeats=5)


def plan_of(
    *,
    quick: bool = False,
    queries: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    with_also: tuple[str, ...] = (),
    repeats: int | None = None,
) -> Size:
    unknown = [name for name in queries if name not in QUERIES]
    if unknown:
        raise BadCall(
            f"there is no query {', '.join(unknown)} here; there is {', '.join(QUERIES)}",
            code="unknown_query",
        )
    size = QUICK if quick else FULL
    return msgspec.structs.replace(
        size,
        repeats=repeats or size.repeats,
        queries=tuple(name for name in QUERIES if name in (queries or (FLOOR,))),
        without=named(without),
        added=added(with_also),
    )


def settings(size: Size) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(size),
        "rows": micro_batches.ROWS,
        "query_rows": {name: ablated_batches.QUERIES[name].rows for name in size.queries},
        "without_settings": {name: CHANGED[name].conf for name in size.without},
        "added_settings": {name: CHANGED[name].conf for name in size.added},
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
