"""Position reports of vehicles on highways, in the shape of the LightSaber sample of Linear Road.

The road always carries `rate * report_every_s` vehicles, each in a place of its own that reports
once per round; a place is taken by one trip after the other. A trip enters on lane 0, speeds up to
its own cruising speed, changes lanes, and leaves on lane 4. What slows it down is where it is: some
segments are always slow, and now and then an accident stops the traffic of one segment and slows
the four behind it. A vehicle moves by the speed it reported last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.seeded import (
    BASE_TIME_MS,
    STAMP,
    Draw,
    Ints,
    numbers,
    require,
    stamps,
)

POSITION_REPORTS = pa.schema(
    [
        ("timestamp", pa.int64()),
        ("vehicle", pa.int32()),
        ("speed", pa.float32()),
        ("highway", pa.int32()),
        ("lane", pa.int32()),
        ("direction", pa.int32()),
        ("position", pa.int32()),
        ("at", STAMP),
    ]
)

SEGMENT_FEET = 5_280
SEGMENTS = 100
ROAD_FEET = SEGMENT_FEET * SEGMENTS
ENTRY_LANE, EXIT_LANE = 0, 4
SPEED_MAX = 75
_ACCIDENT_REACH = 4
_TRIP_STEPS = 1_024


@dataclass(frozen=True, kw_only=True)
class LinearRoadOptions:
    """The traffic: how much there is and what holds it up."""

    rate: int = 1_000
    """Reports per second of event time."""
    report_every_s: int = 30
    """Time between two reports of one vehicle, in seconds."""
    vehicles: int = 120_000
    """Vehicle ids in use; taken in whole multiples of the vehicles on the road at once."""
    highways: int = 1
    """Highways, each with two directions of 100 segments."""
    trip_reports_min: int = 4
    """Reports of the shortest trip."""
    trip_reports_max: int = 20
    """Reports of the longest trip."""
    slow_share: float = 0.2
    """Share of segments where traffic is always below 40 mph, 0 to 1."""
    accident_every_s: int = 120
    """Time between two accidents on one highway and direction, in seconds."""
    accident_s: int = 60
    """How long an accident blocks its segment, in seconds."""
    base_time_ms: int = BASE_TIME_MS
    """Event time of timestamp 0, in milliseconds since the epoch."""

    @classmethod
    def of_rate(cls, rate: int, **options: Any) -> Self:
        """Options for a rate, however high: there are at least as many vehicles as report."""
        given = {"vehicles": cls.vehicles, "report_every_s": cls.report_every_s, **options}
        if "vehicles" not in options:
            given["vehicles"] = max(given["vehicles"], rate * given["report_every_s"])
        return cls(rate=rate, **given)

    def __post_init__(self) -> None:
        counts = (self.rate, self.report_every_s, self.highways, self.accident_every_s)
        require(
            min(counts) >= 1 and self.accident_s >= 0 and 0 <= self.slow_share <= 1,
            f"{self} has no traffic; counts are 1 or more, a share is from 0 to 1",
        )
        require(
            self.on_road <= self.vehicles < 2**31,
            f"{self.vehicles} vehicles cannot be {self.on_road} on the road at once; give between "
            f"{self.on_road} and {2**31 - 1}",
        )
        require(
            2 <= self.trip_reports_min <= self.trip_reports_max < _TRIP_STEPS
            and self.trip_feet_max < ROAD_FEET,
            f"trips of {self.trip_reports_min} to {self.trip_reports_max} reports every "
            f"{self.report_every_s} s do not fit a road of {ROAD_FEET} feet; give 2 reports or "
            "more, and fewer for the longest trip",
        )

    @property
    def on_road(self) -> int:
        """Vehicles on the road at once."""
        return self.rate * self.report_every_s

    @property
    def trip_feet_max(self) -> int:
        return self.trip_reports_max * feet(SPEED_MAX, self.report_every_s)


def feet(mph: int, seconds: int) -> int:
    """Distance covered, in feet: 22/15 of a foot per second and mile per hour."""
    return mph * seconds * 22 // 15


class LinearRoad:
    """Position reports numbered from 0, `rate` of them in every second."""

    schema = POSITION_REPORTS

    def __init__(self, options: LinearRoadOptions | None = None, seed: int = 7) -> None:
        self.options = options if options is not None else LinearRoadOptions()
        self.seed = seed
        self._trip_reports = Draw(seed, "road.trip_reports")
        self._phase = Draw(seed, "road.phase")
        self._highway = Draw(seed, "road.highway")
        self._direction = Draw(seed, "road.direction")
        self._entry = Draw(seed, "road.entry")
        self._cruise = Draw(seed, "road.cruise")
        self._jitter = Draw(seed, "road.jitter")
        self._accident = Draw(seed, "road.accident")
        self._limits = _slow_limits(self.options, seed)

    def events(self, first: int, count: int) -> pa.RecordBatch:
        """Reports `first` to `first + count - 1`."""
        options = self.options
        n = numbers(first, count)
        turn, place = np.divmod(n, options.on_road)
        choices = options.trip_reports_max - options.trip_reports_min + 1
        reports = self._trip_reports.below(place, choices) + options.trip_reports_min
        # The phase puts every place somewhere in the middle of a trip when the stream begins.
        number, step = np.divmod(turn + self._phase.below(place, reports), reports)
        trip = place + options.on_road * number
        recurs = options.vehicles // options.on_road
        highway = self._highway.below(trip, options.highways)
        direction = self._direction.below(trip, 2)
        timestamp = n // options.rate + 1
        speed, driven = self._drive(trip, step, reports, timestamp, highway * 2 + direction)
        lane = np.where(step == 0, ENTRY_LANE, 1 + (trip + step // 2) % 3)
        lane = np.where(step == reports - 1, EXIT_LANE, lane)
        position = np.where(direction == 0, driven, ROAD_FEET - 1 - driven)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(timestamp),
                pa.array((trip % (options.on_road * recurs)).astype(np.int32)),
                pa.array(speed.astype(np.float32)),
                pa.array(highway.astype(np.int32)),
                pa.array(lane.astype(np.int32)),
                pa.array(direction.astype(np.int32)),
                pa.array(position.astype(np.int32)),
                stamps((options.base_time_ms + timestamp * 1_000) * 1_000),
            ],
            schema=POSITION_REPORTS,
        )

    def _drive(
        self, trip: Ints, step: Ints, reports: Ints, timestamp: Ints, road: Ints
    ) -> tuple[Ints, Ints]:
        """Speed and distance from the start of the road at `step`, by driving every step to it."""
        options = self.options
        driven = self._entry.below(trip, ROAD_FEET - options.trip_feet_max)
        cruise = self._cruise.below(trip, 26) + 50
        speed = np.zeros_like(driven)
        begun_at = timestamp - step * options.report_every_s
        under_way = np.arange(len(trip))
        for done in range(int(step.max(initial=-1)) + 1):
            under_way = under_way[step[under_way] >= done]
            mine = under_way
            wish = self._wish(trip[mine], done, reports[mine], cruise[mine])
            now = begun_at[mine] + done * options.report_every_s
            possible = self._possible(trip[mine], done, now, road[mine], driven[mine])
            speed[mine] = np.minimum(wish, possible)
            moving = mine[step[mine] > done]
            driven[moving] += speed[moving] * options.report_every_s * 22 // 15
        return speed, driven

    def _wish(self, trip: Ints, done: int, reports: Ints, cruise: Ints) -> Ints:
        """The speed a vehicle would have on an empty road: near its last one, by half-steps."""
        jitter = self._jitter.below(trip * _TRIP_STEPS + done, 11) - 5
        if done == 0:
            return jitter + 27
        approached = cruise - ((cruise - 27) >> min(done, 62))
        leaving = done == reports - 1
        wish: Ints = np.clip(np.where(leaving, approached - 12, approached) + jitter, 0, SPEED_MAX)
        return wish

    def _possible(self, trip: Ints, done: int, now: Ints, road: Ints, driven: Ints) -> Ints:
        """The speed that slow segments and accidents allow where the vehicle is."""
        options = self.options
        segment = driven // SEGMENT_FEET
        limit = self._limits[road * SEGMENTS + segment]
        cycle, since_s = np.divmod(now, options.accident_every_s)
        # One number for each pair of cycle and road.
        where = self._accident.below(cycle * (2 * options.highways) + road, SEGMENTS)
        behind = where - segment
        held_up = (since_s < options.accident_s) & (behind >= 0) & (behind <= _ACCIDENT_REACH)
        # Three in ten vehicles in the segment itself stand still.
        crawl = np.where((behind == 0) & (trip % 10 < 3), 0, 6 + 6 * behind + (trip + done) % 5)
        possible: Ints = np.where(held_up, np.minimum(limit, crawl), limit)
        return possible


def _slow_limits(options: LinearRoadOptions, seed: int) -> Ints:
    """The speed limit of every segment of every road, in driving order."""
    n = np.arange(options.highways * 2 * SEGMENTS, dtype=np.int64)
    slow = Draw(seed, "road.slow").chance(n, options.slow_share)
    limits: Ints = np.where(slow, 20 + Draw(seed, "road.limit").below(n, 16), SPEED_MAX)
    return limits
