"""Auctions and the bids on them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.nexmark.channels import Channels
from penstock_lab.workloads.nexmark.options import NexmarkOptions
from penstock_lab.workloads.nexmark.order import (
    AUCTIONS_PER_EPOCH,
    EPOCH,
    FIRST_ID,
    elapsed_ms,
    newest_auction,
)
from penstock_lab.workloads.nexmark.persons import SomePerson
from penstock_lab.workloads.nexmark.text import Padding, ShortWords, lengths
from penstock_lab.workloads.seeded import STAMP, Draw, Ints, power_of_ten, stamps

AUCTIONS = pa.schema(
    [
        ("id", pa.int64()),
        ("item_name", pa.string()),
        ("description", pa.string()),
        ("initial_bid", pa.int64()),
        ("reserve", pa.int64()),
        ("date_time", STAMP),
        ("expires", STAMP),
        ("seller", pa.int64()),
        ("category", pa.int64()),
        ("extra", pa.string()),
    ]
)
BIDS = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("url", pa.string()),
        ("date_time", STAMP),
        ("extra", pa.string()),
    ]
)

FIRST_CATEGORY = 10
CATEGORIES = 5
PRICE_DECADES = 6
_AUCTION_NUMBER_BYTES = 48
_BID_NUMBER_BYTES = 32


class Auctions:
    """The rows of auction events."""

    def __init__(self, options: NexmarkOptions, seed: int) -> None:
        self._options = options
        self._item = ShortWords(seed, "auction.item", 20, spaced=True)
        self._description = ShortWords(seed, "auction.description", 100, spaced=True)
        self._initial_bid = Draw(seed, "auction.initial_bid")
        self._reserve = Draw(seed, "auction.reserve")
        self._lasts = Draw(seed, "auction.lasts")
        self._category = Draw(seed, "auction.category")
        self._seller = SomePerson(options, seed, "seller", options.hot_seller_share, hot_place=0)
        self._extra = Padding(seed, "auction.extra", options.auction_bytes)

    def rows(self, event: Ints) -> pa.RecordBatch:
        item = self._item.cut(event)
        description = self._description.cut(event)
        used = lengths(item) + lengths(description) + _AUCTION_NUMBER_BYTES
        initial_bid = prices(self._initial_bid, event)
        since_ms = elapsed_ms(event, self._options.rate)
        time_ms = self._options.base_time_ms + since_ms
        return pa.RecordBatch.from_arrays(
            [
                pa.array(newest_auction(event) + FIRST_ID),
                item,
                description,
                pa.array(initial_bid),
                pa.array(initial_bid + prices(self._reserve, event)),
                stamps(time_ms * 1_000),
                stamps((time_ms + self._lasts_ms(event, since_ms)) * 1_000),
                pa.array(self._seller.ids(event)),
                pa.array(self._category.below(event, CATEGORIES) + FIRST_CATEGORY),
                self._extra.cut(event, used),
            ],
            schema=AUCTIONS,
        )

    def _lasts_ms(self, event: Ints, since_ms: Ints) -> Ints:
        """Up to twice the time in which as many auctions open as are in flight."""
        ahead = self._options.auctions_in_flight * EPOCH // AUCTIONS_PER_EPOCH
        horizon_ms = elapsed_ms(event + ahead, self._options.rate) - since_ms
        return self._lasts.below(event, np.maximum(2 * horizon_ms, 1)) + 1


class Bids:
    """The rows of bid events."""

    def __init__(self, options: NexmarkOptions, seed: int) -> None:
        self._options = options
        self._is_hot = Draw(seed, "bid.is_hot")
        self._auction = Draw(seed, "bid.auction")
        self._bidder = SomePerson(options, seed, "bidder", options.hot_bidder_share, hot_place=1)
        self._price = Draw(seed, "bid.price")
        self._channels = Channels(options, seed)
        self._extra = Padding(seed, "bid.extra", options.bid_bytes)

    def rows(self, event: Ints) -> pa.RecordBatch:
        channel, url = self._channels.of(event)
        time_ms = self._options.base_time_ms + elapsed_ms(event, self._options.rate)
        return pa.RecordBatch.from_arrays(
            [
                pa.array(self._auctions(event)),
                pa.array(self._bidder.ids(event)),
                pa.array(prices(self._price, event)),
                channel,
                url,
                stamps(time_ms * 1_000),
                self._extra.cut(event, _BID_NUMBER_BYTES),
            ],
            schema=BIDS,
        )

    def _auctions(self, event: Ints) -> Ints:
        newest = newest_auction(event)
        oldest = np.maximum(newest - self._options.auctions_in_flight, 0)
        choices = newest - oldest + 1 + self._options.auction_lead
        anyone = oldest + self._auction.below(event, choices)
        every = self._options.hot_auction_every
        is_hot = self._is_hot.chance(event, self._options.hot_auction_share)
        return np.where(is_hot, newest // every * every, anyone) + FIRST_ID


def prices(draw: Draw, event: Ints) -> Ints:
    """Prices in cents, from 100 to 100,000,000, the logarithm spread evenly."""
    cents: Ints = np.rint(power_of_ten(draw.unit(event), PRICE_DECADES) * 100.0).astype(np.int64)
    return cents
