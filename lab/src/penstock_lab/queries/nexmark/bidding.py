"""The bidding on one auction, as far as it is known: the decisions of Q4 and Q6, without Spark.

A bid counts if it was made while its auction was open, both ends included. Streams are read side by
side, so a bid may be there before its auction: it waits.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

STATE = (
    "is_open boolean, category bigint, seller bigint, opens_us bigint, expires_us bigint, "
    "price bigint, at_us bigint, sent_us bigint, early binary"
)
_BID = struct.Struct("<qqq")


class Event(NamedTuple):
    """An auction that opens, or a bid; a bid has no category, seller and end, and 0 for them."""

    is_auction: bool
    category: int
    seller: int
    expires_us: int
    price: int
    at_us: int
    sent_us: int


class Bidding(NamedTuple):
    """The state kept for one auction, in the order of `STATE`. `price` 0: no bid counts yet.

    `early` holds the bids that wait for their auction, price, time and send time of each, packed:
    PySpark 4.3 reads the schema of this state in lower case, and knows no array by that.
    """

    is_open: bool = False
    category: int = 0
    seller: int = 0
    opens_us: int = 0
    expires_us: int = 0
    price: int = 0
    at_us: int = 0
    sent_us: int = 0
    early: bytes = b""

    @property
    def settled_ms(self) -> int:
        """Once event time is past this, no row can change anything here.

        For an open auction its end. Bids that wait need an auction that opened before them, and
        no such auction can come any more once event time has passed the last of them.
        """
        if self.is_open:
            return self.expires_us // 1_000
        return max((bid[1] for bid in _BID.iter_unpack(self.early)), default=0) // 1_000


def after(kept: Bidding, events: Iterable[Event], *, lowest: bool = False) -> Bidding:
    """The bidding after the events, in whatever order they came.

    Of two bids with the winning price the earlier one wins. `lowest`: the lowest price wins.
    """
    is_open, category, seller, opens_us, expires_us, price, at_us, sent_us, early = kept
    bids = list(_BID.iter_unpack(early))
    for event in events:
        if event.is_auction:
            is_open, category, seller = True, event.category, event.seller
            opens_us, expires_us = event.at_us, event.expires_us
            sent_us = max(sent_us, event.sent_us)
        else:
            bids.append((event.price, event.at_us, event.sent_us))
    if not is_open:
        return Bidding(early=b"".join(_BID.pack(*bid) for bid in bids))
    for bid_price, bid_at_us, bid_sent_us in bids:
        if opens_us <= bid_at_us <= expires_us:
            sent_us = max(sent_us, bid_sent_us)
            beats = bid_price < price if lowest else bid_price > price
            if not price or beats or (bid_price == price and bid_at_us < at_us):
                price, at_us = bid_price, bid_at_us
    return Bidding(True, category, seller, opens_us, expires_us, price, at_us, sent_us)
