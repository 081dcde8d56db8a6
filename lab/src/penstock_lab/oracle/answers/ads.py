"""Answers of the Yahoo streaming benchmark, with the table `campaigns` in place of Redis."""

from __future__ import annotations

from penstock_lab.oracle.answers.windows import SECOND_US
from penstock_lab.queries import Query

TEN_S = 10 * SECOND_US


def ysb(_: Query) -> str:
    start = f"event_time - event_time % {TEN_S}"
    return f"""
        select c.campaign_id, {start} as starts_at, sum(count(*)) over so_far as views,
            max(max(a.sent_at)) over so_far as sent_at, a._batch
        from ads a join campaigns c on a.ad_id = c.ad_id
        where a.event_type = 'view' and {start} + {TEN_S} > a._late_us
        group by c.campaign_id, starts_at, a._batch
        window so_far as (partition by c.campaign_id, starts_at order by a._batch)
    """
