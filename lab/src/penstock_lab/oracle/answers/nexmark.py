"""Answers of NEXMark: Q1 to Q8, Q13 and Q18 to Q20.

Q4 and Q6 have two stages: there is an answer for each, and a truth for the whole, over what the
first stage had read.
"""

from __future__ import annotations

from penstock_lab.oracle.answers.windows import SECOND_US, whole
from penstock_lab.queries import Query

TEN_S, TWO_S = 10 * SECOND_US, 2 * SECOND_US
_VALID = """
    select a.id as auction, a.category, a.seller, a.expires, b.price, b.date_time,
        greatest(a.sent_at, b.sent_at) as sent_at, greatest(a._batch, b._batch) as _batch
    from auctions a join bids b on a.id = b.auction
    where b.date_time between a.date_time and a.expires
        and a.date_time > a._late_us and b.date_time > b._late_us
"""
# An auction is over once event time is past the millisecond in which it ends.
_OVER_US = "expires - expires % 1000 + 1000"


def q1(_: Query) -> str:
    return """
        select auction, bidder, date_time, sent_at, _batch,
            (price::decimal(20,0) * 0.908::decimal(3,3))::decimal(23,3) as price
        from bids
    """


def q2(query: Query) -> str:
    listed = query.parameters["auctions"]
    kept = "auction % 123 = 0"
    if isinstance(listed, (list, tuple)):
        kept = f"auction in ({', '.join(str(int(auction)) for auction in listed)})"
    return f"select auction, price, sent_at, _batch from bids where {kept}"


def q3(query: Query) -> str:
    states = query.parameters["states"]
    assert isinstance(states, tuple)
    kept = ", ".join(f"'{state}'" for state in states)
    return f"""
        select p.name, p.city, p.state, a.id as auction,
            greatest(a.sent_at, p.sent_at) as sent_at, greatest(a._batch, p._batch) as _batch
        from auctions a join persons p on a.seller = p.id
        where a.category = 10 and p.state in ({kept})
    """


def q5(_: Query) -> str:
    return f"""
        with hits as (
            select window_starts(date_time, {TEN_S}, {TWO_S}) as starts_at,
                auction, sent_at, _late_us
            from bids
        ), counted as (
            select starts_at, auction, count(*) as bids, max(sent_at) as sent_at
            from hits where starts_at + {TEN_S} > _late_us group by starts_at, auction
        ), closed as (
            select starts_at, max(bids) as most, closed_in(starts_at + {TEN_S}) as _batch
            from counted group by starts_at
        )
        select starts_at, starts_at + {TEN_S} as ends_at, auction, bids, sent_at, _batch
        from counted join closed using (starts_at)
        where bids = most and _batch is not null
    """


def q7(_: Query) -> str:
    return f"""
        with highest as (
            select date_time - date_time % {TEN_S} + {TEN_S} as ends_at,
                max(price) as price, max(sent_at) as sent_at
            from bids where date_time - date_time % {TEN_S} + {TEN_S} > _late_us group by ends_at
        ), closed as (
            select *, closed_in(ends_at) as _batch from highest
        )
        select b.auction, b.bidder, b.price, b.date_time, c.ends_at,
            greatest(b.sent_at, c.sent_at) as sent_at, c._batch
        from closed c join bids b on b.price = c.price
            and b.date_time >= c.ends_at - {TEN_S} and b.date_time <= c.ends_at
        where c._batch is not null and b.date_time > b._late_us
    """


def q8(_: Query) -> str:
    start = f"date_time - date_time % {TEN_S}"
    return f"""
        with joined as (
            select {start} as starts_at, id, name, max(sent_at) as sent_at
            from persons where {start} + {TEN_S} > _late_us group by all
        ), sold as (
            select {start} as starts_at, seller as id, max(sent_at) as sent_at
            from auctions where {start} + {TEN_S} > _late_us group by all
        ), both_did as (
            select id, name, starts_at, greatest(j.sent_at, s.sent_at) as sent_at,
                closed_in(starts_at + {TEN_S}) as _batch
            from joined j join sold s using (starts_at, id)
        )
        select * from both_did where _batch is not null
    """


def q13(query: Query) -> str:
    rows = whole(query, "side_input_rows")
    return f"""
        select auction, bidder, price, date_time, (auction % {rows})::varchar as value, sent_at,
            _batch
        from bids
    """


def q18(_: Query) -> str:
    return """
        with touched as (
            select bidder, auction, _batch, max(max(sent_at)) over so_far as sent_at
            from bids group by bidder, auction, _batch
            window so_far as (partition by bidder, auction order by _batch)
        ), latest as (
            -- Of a batch only its latest bid can be the latest so far.
            from bids qualify 1 = row_number() over (
                partition by bidder, auction, _batch
                order by date_time desc, extra, price, channel, url
            )
        ), seen as (
            select b.* exclude (_batch, sent_at), t.sent_at, t._batch,
                row_number() over (
                    partition by t.bidder, t.auction, t._batch
                    order by b.date_time desc, b.extra, b.price, b.channel, b.url
                ) as place
            from touched t join latest b
                on b.bidder = t.bidder and b.auction = t.auction and b._batch <= t._batch
        )
        select auction, bidder, price, channel, url, date_time, extra, sent_at, _batch
        from seen where place = 1
    """


def q19(_: Query) -> str:
    return """
        with touched as (
            select auction, _batch, max(max(sent_at)) over so_far as sent_at
            from bids group by auction, _batch
            window so_far as (partition by auction order by _batch)
        ), highest as (
            -- Of a batch only its ten highest bids can be among the ten highest so far.
            from bids qualify 10 >= row_number() over (
                partition by auction, _batch
                order by price desc, date_time desc, extra desc, bidder desc, channel desc,
                    url desc
            )
        ), seen as (
            select b.* exclude (_batch, sent_at), t.sent_at, t._batch,
                row_number() over (
                    partition by t.auction, t._batch
                    order by b.price desc, b.date_time desc, b.extra desc, b.bidder desc,
                        b.channel desc, b.url desc
                ) as rank
            from touched t join highest b on b.auction = t.auction and b._batch <= t._batch
        )
        select auction, bidder, price, channel, url, date_time, extra, rank, sent_at, _batch
        from seen where rank <= 10
    """


def q20(_: Query) -> str:
    return """
        select b.auction, b.bidder, b.price, b.channel, b.url, b.date_time as bid_date_time,
            b.extra as bid_extra, a.item_name, a.description, a.initial_bid, a.reserve,
            a.date_time as auction_date_time, a.expires, a.seller, a.category,
            a.extra as auction_extra, greatest(a.sent_at, b.sent_at) as sent_at,
            greatest(a._batch, b._batch) as _batch
        from bids b join auctions a on b.auction = a.id
        where a.category = 10
    """


def kept_bids(query: Query) -> str:
    dropped, bidders = whole(query, "dropped_bidder"), whole(query, "bidders")
    return f"""
        select auction, sum(count(*)) over so_far as bids,
            max(max(sent_at)) over so_far as sent_at, _batch
        from bids where bidder between 0 and {bidders - 1} and bidder <> {dropped}
        group by auction, _batch
        window so_far as (partition by auction order by _batch)
    """


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
