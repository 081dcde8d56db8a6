"""Query sets by name: which queries, over which rows, at which rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import BadCall
from penstock_lab.queries import ADS, CLUSTER, LINEAR_ROAD, NEXMARK, NEXMARK_FURTHER, PAPER, Query
from penstock_lab.workloads.seeded import BASE_TIME_MS

SECOND_MS = 1_000
WINDOW_MS = {"q8": 10 * SECOND_MS}
"""Length of the windows of a query that writes their starts and has no parameter for it."""


@dataclass(frozen=True)
class QuerySet:
    """Queries over one generator. Rates and speeds are fixed, so that runs can be compared."""

    name: str
    description: str
    workload: str
    queries: Mapping[str, Callable[..., Query]]
    quick: tuple[str, ...]
    """What --quick runs."""
    rate: int
    """Events per second, of all streams of the generator together."""
    event_speed: float
    """Seconds of event time in a second: a short run sees enough windows close."""
    base_time_ms: int = BASE_TIME_MS
    """Event time of the first event."""
    further: Mapping[str, Callable[..., Query]] = field(default_factory=dict)
    """Queries over the same rows that only some suite has a use for."""
    rates: Mapping[str, int] = field(default_factory=dict)
    """Of the queries that two cores cannot keep up with at `rate`."""

    def chosen(self, names: Sequence[str], *, quick: bool) -> tuple[str, ...]:
        """The queries asked for, else those of a quick run, else all; names in any case."""
        wanted = tuple(dict.fromkeys(name.lower() for name in names))
        unknown = [name for name in wanted if name not in self.queries]
        if unknown:
            raise BadCall(
                f"{self.name} has no query {', '.join(unknown)}; it has {', '.join(self.queries)}",
                code="unknown_query",
            )
        return wanted or (self.quick if quick else tuple(self.queries))


QUERY_SETS = {
    query_set.name: query_set
    for query_set in (
        QuerySet(
            "nexmark",
            "Auctions and bids: stateless, joined, windowed and updating queries.",
            "nexmark",
            NEXMARK,
            ("q1", "q3", "q4", "q5", "q8", "q18"),
            rate=2_000,
            event_speed=4,
            further=NEXMARK_FURTHER,
            # Both call Python once for each auction that a batch touches.
            rates={"q4": 1_000, "q6": 1_000},
        ),
        QuerySet(
            "linearroad",
            "Position reports of vehicles: a windowed self-join and windowed aggregates.",
            "linear_road",
            LINEAR_ROAD,
            ("lr_join_30_5", "lr_speed_30_10", "lr_count_20_5"),
            rate=1_000,
            event_speed=4,
            base_time_ms=BASE_TIME_MS + SECOND_MS,
            further={name: made for name, made in PAPER.items() if name.startswith("lr_")},
        ),
        QuerySet(
            "cluster",
            "Task events of a compute cluster: windowed aggregates, one of them sorted.",
            "cluster_trace",
            CLUSTER,
            ("cm_category_60_10", "cm_job_60_5"),
            rate=1_000,
            event_speed=10,
            base_time_ms=BASE_TIME_MS + SECOND_MS,
            further={name: made for name, made in PAPER.items() if name.startswith("cm_")},
        ),
        QuerySet(
            "ysb",
            "Ad views per campaign, campaigns looked up in Redis.",
            "ads",
            ADS,
            ("ysb",),
            rate=2_000,
            event_speed=1,
        ),
    )
}


def key_of(query: str) -> str:
    """A query's name in figures and tables: Q4, lr_join_30_5."""
    return query.upper() if query[:1] == "q" and query[1:].isdigit() else query


def query_set_of(query: str) -> QuerySet:
    """The set a query belongs to."""
    for query_set in QUERY_SETS.values():
        if query.lower() in {**query_set.queries, **query_set.further}:
            return query_set
    known = ", ".join(
        name for each in QUERY_SETS.values() for name in (*each.queries, *each.further)
    )
    raise BadCall(f"there is no query {query!r}; there is {known}", code="unknown_query")


@dataclass(frozen=True)
class Window:
    """The column in which a row names its window, and when in event time that can close."""

    column: str
    closes_after_ms: int
    """From the column's value to the end of the window plus the watermark's delay."""


def window_of(query: Query) -> Window | None:
    """The window of a query; None if its rows do not wait for one to close."""
    last = query.stages[-1]
    if last.mode != "append" or not last.watermarks:
        return None
    delay_ms = max(mark.delay_ms for mark in last.watermarks)
    names = [column.split()[0] for column in last.columns.split(", ")]
    if "ends_at" in names:
        return Window("ends_at", delay_ms)
    if "starts_at" not in names:
        return None
    range_s = query.parameters.get("range_s")
    length_ms = int(range_s) * SECOND_MS if isinstance(range_s, int) else WINDOW_MS[query.family]
    return Window("starts_at", length_ms + delay_ms)


def only_log(query: Query) -> str | None:
    """The reason why a query cannot run between files; None if it can."""
    updating = [stage.name for stage in query.stages if stage.mode != "append"]
    if not updating:
        return None
    return f"{', '.join(updating)} updates rows, and Spark's file sink only appends"
