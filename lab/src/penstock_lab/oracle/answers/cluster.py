"""Answers of cluster monitoring: cpu per category and per job."""

from __future__ import annotations

from penstock_lab.oracle.answers.windows import sizes_us
from penstock_lab.queries import Query


def cm_category(query: Query) -> str:
    range_us, slide_us = sizes_us(query)
    return f"""
        with expanded as (
            select window_starts("at", {range_us}, {slide_us}) as starts_at, category, cpu, sent_at,
                _late_us
            from tasks
        ), sums as (
            select starts_at, category, sum(cpu::decimal(8,6))::decimal(18,6) as cpu,
                max(sent_at) as sent_at
            from expanded where starts_at + {range_us} > _late_us group by starts_at, category
        ), closed as (
            select *, closed_in(starts_at + {range_us}) as _batch,
                row_number() over (partition by starts_at order by cpu, category) as rank
            from sums
        )
        select starts_at, rank, category, cpu, sent_at, _batch
        from closed where _batch is not null
    """


def cm_job(query: Query) -> str:
    range_us, slide_us = sizes_us(query)
    return f"""
        with expanded as (
            select window_starts("at", {range_us}, {slide_us}) as starts_at, job, cpu, sent_at,
                _late_us
            from tasks where event_type = 1
        ), means as (
            select starts_at, job, sum(cpu::decimal(8,6))::double / count(*)::double as cpu,
                max(sent_at) as sent_at, closed_in(starts_at + {range_us}) as _batch
            from expanded where starts_at + {range_us} > _late_us group by starts_at, job
        )
        select * from means where _batch is not null
    """


def cm_category_complete(query: Query) -> str:
    """Every batch writes all windows that any row up to it is in, from the start on."""
    range_us, slide_us = sizes_us(query)
    return f"""
        with expanded as (
            select window_starts("at", {range_us}, {slide_us}) as starts_at, category, cpu, sent_at,
                _batch
            from tasks
        ), parts as (
            select starts_at, category, sum(cpu::decimal(8,6)) as cpu, max(sent_at) as sent_at,
                _batch as read_in
            from expanded group by starts_at, category, _batch
        )
        select starts_at, category, sum(cpu)::decimal(18,6) as cpu, max(sent_at) as sent_at,
            b.batch as _batch
        from batches b join parts on read_in <= b.batch group by b.batch, starts_at, category
    """
