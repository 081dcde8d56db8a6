"""Answers of Linear Road: joined reports, congested segments, vehicles per segment."""

from __future__ import annotations

from penstock_lab.oracle.answers.windows import sizes_us
from penstock_lab.queries import Query


def lr_join(query: Query) -> str:
    range_us, slide_us = sizes_us(query)
    # Two reports share a window if the last window of the earlier one reaches the later one.
    return f"""
        with kept as (
            select *, "at" - "at" % {slide_us} + {range_us} as until
            from reports where "at" > _late_us
        )
        select l."at", l.vehicle, l.speed, l.highway, l.lane, l.direction,
            l.position // 5280 as segment, r."at" as seen_at,
            greatest(l.sent_at, r.sent_at) as sent_at, greatest(l._batch, r._batch) as _batch
        from kept l join kept r on l.vehicle = r.vehicle
        where greatest(l."at", r."at") < case when l."at" <= r."at" then l.until else r.until end
    """


def lr_speed(query: Query) -> str:
    range_us, slide_us = sizes_us(query)
    return f"""
        with {_windowed(range_us, slide_us)}, means as (
            select starts_at, highway, direction, segment,
                sum(speed::decimal(8,4))::double / count(*)::double as speed,
                max(sent_at) as sent_at
            from windowed group by starts_at, highway, direction, segment
        )
        select *, closed_in(starts_at + {range_us}) as _batch from means
        where speed < 40 and closed_in(starts_at + {range_us}) is not null
    """


def lr_count(query: Query) -> str:
    range_us, slide_us = sizes_us(query)
    return f"""
        with {_windowed(range_us, slide_us)}, counts as (
            select starts_at, highway, direction, segment, count(distinct vehicle) as vehicles,
                max(sent_at) as sent_at
            from windowed group by starts_at, highway, direction, segment
        )
        select *, closed_in(starts_at + {range_us}) as _batch from counts
        where closed_in(starts_at + {range_us}) is not null
    """


def _windowed(range_us: int, slide_us: int) -> str:
    return f"""expanded as (
        select window_starts("at", {range_us}, {slide_us}) as starts_at, highway, direction,
            position // 5280 as segment, vehicle, speed, sent_at, _late_us
        from reports
    ), windowed as (
        select * from expanded where starts_at + {range_us} > _late_us
    )"""
