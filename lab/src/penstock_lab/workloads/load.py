"""Loads, what a sender sends, as values that fit on a command line: generator, streams, traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa

from penstock.errors import BadCall
from penstock_lab.workloads import traffic
from penstock_lab.workloads.ads import Ads, AdsOptions
from penstock_lab.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock_lab.workloads.demo_bids import DemoBids, DemoBidsOptions
from penstock_lab.workloads.linear_road import LinearRoad, LinearRoadOptions
from penstock_lab.workloads.nexmark import AUCTIONS, BIDS, PERSONS, Nexmark, NexmarkOptions
from penstock_lab.workloads.seeded import STAMP, Generator, Ints, numbers
from penstock_lab.workloads.sending import Piece
from penstock_lab.workloads.traffic import Schedule

EVENTS_AT_ONCE = 500_000
Numbered: TypeAlias = tuple[pa.RecordBatch, Ints]
"""Rows, and the place of each of them among the events."""
Draw: TypeAlias = Callable[[int, int], Mapping[str, Numbered]]
"""The rows of events `first` to `first + count - 1`, by stream."""


class Load(msgspec.Struct, frozen=True):
    """A run of a sender: two equal values send equal rows at equal times."""

    workload: str
    streams: dict[str, str]
    """The generator's streams that are sent, each with its name where it goes."""
    rate: int
    """Events per second, of all streams of the generator together, sent or not."""
    seconds: float
    seed: int = 7
    first: int = 0
    """Number of the first event."""
    tick_ms: int = 20
    traffic: Literal["constant", "normal", "burst"] = "constant"
    burst_every_s: float = 30.0
    """From the end of a burst to the end of the next, where traffic comes in bursts."""
    burst_s: float = 1.0
    """How long a burst lasts: ten times the rate."""
    event_speed: float = 1.0
    """Seconds of event time in a second."""
    options: dict[str, Any] = {}
    """Further options of the generator."""

    def __post_init__(self) -> None:
        if self.rate < 1 or self.seconds <= 0 or self.tick_ms < 1 or self.event_speed <= 0:
            raise BadCall(
                f"{self} sends nothing: rate and tick are at least 1, seconds and the speed of "
                "event time above 0",
                code="bad_request",
            )
        if self.workload not in WORKLOADS:
            raise BadCall(
                f"there is no workload {self.workload!r}; there is {', '.join(WORKLOADS)}",
                code="bad_request",
            )
        unknown = sorted(set(self.streams) - set(WORKLOADS[self.workload].schemas))
        if unknown:
            raise BadCall(
                f"{self.workload} has no stream {', '.join(unknown)}; it has "
                f"{', '.join(WORKLOADS[self.workload].schemas)}",
                code="bad_request",
            )

    @property
    def ticks(self) -> int:
        return math.ceil(self.seconds * 1000 / self.tick_ms)

    @property
    def event_rate(self) -> int:
        """Events in a second of event time."""
        return max(1, round(self.rate / self.event_speed))

    def schedule(self) -> Schedule:
        tick_us = self.tick_ms * 1000
        if self.traffic == "constant":
            return traffic.Constant(tick_us=tick_us, rate=self.rate)
        if self.traffic == "burst":
            return traffic.Burst(
                tick_us=tick_us,
                rate=self.rate,
                every_us=round(self.burst_every_s * 1e6),
                length_us=round(self.burst_s * 1e6),
            )
        return traffic.RandomNormal(
            tick_us=tick_us, rate=self.rate, deviation=self.rate // 5, seed=self.seed
        )


class Workload(msgspec.Struct, frozen=True):
    """A generator by name: the streams it has, without `sent_at`, and how it is made."""

    schemas: dict[str, Any]
    draw: Callable[[Load], Draw]

    def stream_schema(self, stream: str) -> pa.Schema:
        """The columns a stream must have to take what is sent."""
        return self.schemas[stream].append(pa.field("sent_at", STAMP))


def _nexmark(load: Load) -> Draw:
    made = Nexmark(NexmarkOptions(rate=load.event_rate, **load.options), load.seed)

    def draw(first: int, count: int) -> Mapping[str, Numbered]:
        rows, places = made.events(first, count), made.row_numbers(first, count)
        return {
            name: (getattr(rows, name), getattr(places, name))
            for name in WORKLOADS["nexmark"].schemas
        }

    return draw


def _single(stream: str, make: Callable[[Load], Generator]) -> Callable[[Load], Draw]:
    def prepare(load: Load) -> Draw:
        made = make(load)
        return lambda first, count: {stream: (made.events(first, count), numbers(first, count))}

    return prepare


WORKLOADS = {
    "nexmark": Workload({"persons": PERSONS, "auctions": AUCTIONS, "bids": BIDS}, _nexmark),
    "linear_road": Workload(
        {"reports": LinearRoad.schema},
        _single(
            "reports",
            lambda load: LinearRoad(
                LinearRoadOptions.of_rate(load.event_rate, **load.options), load.seed
            ),
        ),
    ),
    "cluster_trace": Workload(
        {"tasks": ClusterTrace.schema},
        _single(
            "tasks",
            lambda load: ClusterTrace(
                ClusterTraceOptions(rate=load.event_rate, **load.options), load.seed
            ),
        ),
    ),
    "ads": Workload(
        {"ads": Ads.schema},
        _single(
            "ads",
            lambda load: Ads(AdsOptions(rate=load.event_rate, **load.options), load.seed),
        ),
    ),
    "demo_bids": Workload(
        {"bids": DemoBids.schema},
        _single("bids", lambda load: DemoBids(DemoBidsOptions(**load.options), load.seed)),
    ),
}


def pieces(load: Load) -> list[Piece]:
    """All pieces of the load, in the order they are due; those without rows are left out."""
    schedule, draw = load.schedule(), WORKLOADS[load.workload].draw(load)
    made: list[Piece] = []
    for ticks in _spans(schedule, load.ticks):
        ends = [schedule.rows_before(tick) for tick in (*ticks, ticks[-1] + 1)]
        drawn = draw(load.first + ends[0], ends[-1] - ends[0])
        cuts = {
            stream: np.searchsorted(drawn[stream][1] - load.first, ends) for stream in load.streams
        }
        for place, tick in enumerate(ticks):
            for stream, name in load.streams.items():
                begin, end = (int(cut) for cut in cuts[stream][place : place + 2])
                if end > begin:
                    rows = drawn[stream][0].slice(begin, end - begin)
                    made.append(Piece(tick, schedule.due_us(tick), name, rows))
    return made


def _spans(schedule: Schedule, ticks: int) -> Iterator[range]:
    """The ticks in stretches of about so many events, so that one call makes many of them."""
    begin = 0
    for tick in range(ticks):
        full = schedule.rows_before(tick + 1) - schedule.rows_before(begin) >= EVENTS_AT_ONCE
        if full or tick == ticks - 1:
            yield range(begin, tick + 1)
            begin = tick + 1
