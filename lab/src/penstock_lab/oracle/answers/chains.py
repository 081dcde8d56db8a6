"""NEXMark Q4 and Q6: each of their two stages, and the whole over the first one's input."""

from __future__ import annotations

from penstock_lab.queries import Query

_VALID = """
    select a.id as auction, a.category, a.seller, a.expires, b.price, b.date_time,
        greatest(a.sent_at, b.sent_at) as sent_at, greatest(a._batch, b._batch) as _batch
    from auctions a join bids b on a.id = b.auction
    where b.date_time between a.date_time and a.expires
        and a.date_time > a._late_us and b.date_time > b._late_us
"""
# An auction is over once event time is past the millisecond in which it ends.
_OVER_US = "expires - expires % 1000 + 1000"


def q4_changes(_: Query) -> str:
    return f"""
        with valid as ({_VALID}), steps as (
            select auction, category, _batch, max(max(price)) over so_far as price,
                max(max(sent_at)) over so_far as sent_at
            from valid group by auction, category, _batch
            window so_far as (partition by auction order by _batch)
        ), changes as (
            select *, lag(price, 1, 0) over (partition by auction order by _batch) as before
            from steps
        )
        select auction, category, price - before as price_change,
            case when before = 0 then 1 else 0 end as auctions_change, sent_at, _batch
        from changes where price <> before
    """


def q4(_: Query) -> str:
    return """
        select category,
            (sum(sum(price_change)) over so_far)::double
                / (sum(sum(auctions_change)) over so_far)::double as average,
            max(max(sent_at)) over so_far as sent_at, _batch
        from q4_changes group by category, _batch
        window so_far as (partition by category order by _batch)
    """


def q4_truth(_: Query) -> str:
    return f"""
        with valid as ({_VALID}), highest as (
            select auction, category, max(price) as price
            from valid where _batch <= getvariable('upto') group by auction, category
        )
        select category, sum(price)::double / count(*)::double as average
        from highest group by category
    """


def q6_winners(query: Query) -> str:
    return f"""
        with valid as ({_VALID}), ranked as (
            select auction, seller, price, date_time, expires,
                max(sent_at) over (partition by auction) as sent_at,
                row_number() over (partition by auction order by {_order(query)}) as place
            from valid
        ), closed as (
            select auction, seller, price, date_time, sent_at, closed_in({_OVER_US}) as _batch
            from ranked where place = 1
        )
        select * from closed where _batch is not null
    """


def q6(_: Query) -> str:
    return """
        with touched as (
            select distinct seller, _batch from q6_winners
        ), seen as (
            select t.seller, t._batch, w.price, w.sent_at,
                row_number() over (
                    partition by t.seller, t._batch order by w.date_time desc, w.auction desc
                ) as place
            from touched t join q6_winners w on w.seller = t.seller and w._batch <= t._batch
        )
        select seller, sum(price)::double / count(*)::double as average,
            max(sent_at) as sent_at, _batch
        from seen where place <= 11 group by seller, _batch
    """


def q6_truth(query: Query) -> str:
    return f"""
        with valid as ({_VALID}), ranked as (
            select *, row_number() over (partition by auction order by {_order(query)}) as place
            from valid
        ), winners as (
            select *, row_number() over (
                partition by seller order by date_time desc, auction desc
            ) as age
            from ranked where place = 1 and closed_in({_OVER_US}) <= getvariable('upto')
        )
        select seller, sum(price)::double / count(*)::double as average
        from winners where age <= 11 group by seller
    """


def _order(query: Query) -> str:
    return "price, date_time" if query.parameters["lowest"] else "price desc, date_time"
