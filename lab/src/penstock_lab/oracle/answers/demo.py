"""Answers of the demo: totals per auction, the leading bid per category."""

from __future__ import annotations

from penstock_lab.oracle.answers.windows import whole
from penstock_lab.queries import Query


def auction_totals(_: Query) -> str:
    return """
        select auction, (sum(count(*)) over so_far)::bigint as bids,
            (sum(sum(price)) over so_far)::bigint as total,
            max(max(price)) over so_far as highest, max(max(sent_at)) over so_far as sent_at, _batch
        from bids group by auction, _batch
        window so_far as (partition by auction order by _batch)
    """


def category_leaders(query: Query) -> str:
    return f"""
        select auction % {whole(query, "categories")} as category,
            max(max(highest)) over so_far as highest,
            max(max(sent_at)) over so_far as sent_at, _batch
        from auction_totals group by category, _batch
        window so_far as (partition by category order by _batch)
    """


def category_leaders_truth(query: Query) -> str:
    return f"""
        select auction % {whole(query, "categories")} as category, max(price) as highest,
            max(sent_at) as sent_at
        from bids where _batch <= getvariable('upto') group by category
    """
