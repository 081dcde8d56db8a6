"""Groups of queries that are checked together, over which events, and what cannot be here.

Windows of 30 s that slide by 1 s make thirty rows of every event, so what they count is chosen to
be few: vehicles that report every second. A join is the other way round: there a vehicle that
reports often meets itself too often, so its vehicles report every 27 s: windows of 30 s that slide
by 5 s hold some of those pairs and not others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock_lab import queries
from penstock_lab.measure.feeding import NexmarkSource, OneStream, Source
from penstock_lab.queries import Query
from penstock_lab.workloads import replay
from penstock_lab.workloads.ads import Ads, AdsOptions
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock_lab.workloads.linear_road import LinearRoad, LinearRoadOptions
from penstock_lab.workloads.nexmark import Nexmark, NexmarkOptions

SEED = 7
REPLAY = "replay"

# Two events share every millisecond, so that ties in time are common.
AUCTIONS = NexmarkOptions(rate=2_000)
MEETING = LinearRoadOptions(rate=1_000, report_every_s=27)
BUSY = LinearRoadOptions(rate=500, report_every_s=1, vehicles=2_000)
TASKS = ClusterTraceOptions(rate=500)
ADS = AdsOptions(rate=1_000, jitter_ms=50)


@dataclass(frozen=True)
class Asked:
    """A query to run: what Spark is told, and what the oracle takes it for."""

    query: Query
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What Spark is told to build the query with."""
    streams: Mapping[str, str] = field(default_factory=dict)
    """What streams are called in the log where that is not their name in the query."""
    label: str = ""
    """Its name in figures and folders; the query's unless it is given."""

    @property
    def name(self) -> str:
        return self.label or self.query.name

    def stream(self, stage: str) -> str:
        return self.streams.get(stage, stage)


@dataclass(frozen=True)
class Group:
    """Queries that run in one driver, and what feeds them."""

    name: str
    sources: tuple[Source, ...]
    asked: tuple[Asked, ...]
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    """What answers are made of besides the streams."""

    @property
    def stages(self) -> int:
        return sum(len(asked_query.query.stages) for asked_query in self.asked)

    def only(self, names: frozenset[str]) -> Group:
        """The same with these queries alone."""
        kept = tuple(asked_query for asked_query in self.asked if asked_query.query.name in names)
        return Group(self.name, self.sources, kept, self.tables)


def merged(name: str, *groups: Group) -> Group:
    """The groups as one, in one driver."""
    return Group(
        name,
        tuple(source for group in groups for source in group.sources),
        tuple(asked_query for group in groups for asked_query in group.asked),
        {key: table for group in groups for key, table in group.tables.items()},
    )


def nexmark(redis: str | None = None) -> Group:
    """The auctions' queries; Q13 looks its side input up in `redis`, which must hold it."""
    looked_up = {} if redis is None else {"q13": {"redis": redis, "ahead": True}}
    asked = tuple(
        Asked(queries.named(name, **parameters), parameters)
        for name in queries.NEXMARK
        for parameters in [looked_up.get(name, {})]
    )
    return Group("nexmark", (NexmarkSource(Nexmark(AUCTIONS, SEED)),), asked)


def linear_road() -> Group:
    meeting = OneStream("reports", "vehicle", LinearRoad(MEETING, SEED))
    busy = OneStream("busy_reports", "vehicle", LinearRoad(BUSY, SEED))
    made = (queries.named(name) for name in queries.LINEAR_ROAD)
    asked = tuple(
        Asked(query, streams={} if query.family == "lr_join" else {"reports": "busy_reports"})
        for query in made
    )
    return Group("linearroad", (meeting, busy), asked)


def cluster() -> Group:
    asked = tuple(Asked(queries.named(name)) for name in queries.CLUSTER)
    return Group("cluster", (OneStream("tasks", "job", ClusterTrace(TASKS, SEED)),), asked)


def ads(redis: str) -> Group:
    """`redis` must hold the campaigns of this seed before the queries start."""
    made = Ads(ADS, SEED)
    parameters = {"redis": redis, "ahead": True}
    asked = (Asked(queries.named("ysb", **parameters), parameters),)
    campaigns = pa.Table.from_batches([made.campaigns()])
    return Group("ysb", (OneStream("ads", "user_id", made),), asked, {"campaigns": campaigns})


def recorded(folder: Path) -> Group:
    """LightSaber's samples, again and again; raises BadCall where they are not in `folder`."""
    reports = replay.linear_road(folder / replay.LINEAR_ROAD_FILE)
    tasks = replay.cluster_trace(folder / replay.CLUSTER_TRACE_FILE)
    sources = (
        OneStream(f"{REPLAY}_reports", "vehicle", reports),
        OneStream(f"{REPLAY}_tasks", "job", tasks),
    )
    asked = []
    for name in (*queries.LINEAR_ROAD, *queries.CLUSTER):
        query = queries.named(name)
        streams = {stream: f"{REPLAY}_{stream}" for stream in (*query.inputs, name)}
        asked.append(Asked(query, streams=streams, label=f"{REPLAY}.{name}"))
    return Group(REPLAY, sources, tuple(asked))
