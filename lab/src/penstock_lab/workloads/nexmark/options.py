"""Options of a NEXMark run, and the large-state setting."""

from __future__ import annotations

from dataclasses import dataclass

from penstock_lab.workloads.nexmark.order import AUCTIONS_PER_EPOCH, EPOCH, PRIME
from penstock_lab.workloads.seeded import BASE_TIME_MS, require

TEXT_MAX = 50_000
_SHARES = ("hot_auction_share", "hot_seller_share", "hot_bidder_share", "hot_channel_share")
_COUNTS = (
    "rate",
    "out_of_order_group",
    "auctions_in_flight",
    "people_active",
    "hot_auction_every",
    "hot_person_every",
    "channels",
)
_BYTES = ("person_bytes", "auction_bytes", "bid_bytes")


@dataclass(frozen=True, kw_only=True)
class NexmarkOptions:
    """The reference's defaults; two equal values and equal seeds give equal events."""

    rate: int = 10_000
    """Events per second of event time, all three kinds together. It decides how many events a
    window holds and how long auctions last, so compare runs of one rate only."""
    base_time_ms: int = BASE_TIME_MS
    """Event time of event 0, in milliseconds since the epoch."""
    out_of_order_group: int = 1
    """Events are shuffled within groups of this many; 1 keeps them in order."""

    auctions_in_flight: int = 100
    """Latest auctions a bid may go to; auctions stay open for up to twice the time it takes to
    make this many."""
    auction_lead: int = 10
    """Auctions not yet opened that a bid may already go to."""
    people_active: int = 1_000
    """Latest persons who sell and bid."""
    person_lead: int = 10
    """Persons not yet known who may already sell and bid."""

    hot_auction_share: float = 0.5
    """Share of bids on the hot auction, 0 to 1."""
    hot_auction_every: int = 100
    """Auctions until the next one is hot; 100 auctions are 1,667 events."""
    hot_seller_share: float = 0.75
    """Share of auctions opened by the hot seller, 0 to 1."""
    hot_bidder_share: float = 0.75
    """Share of bids made by the hot bidder, 0 to 1."""
    hot_person_every: int = 100
    """Persons until the next ones are hot seller and bidder; 100 persons are 5,000 events."""

    hot_channel_share: float = 0.5
    """Share of bids through one of four big channels, 0 to 1."""
    channels: int = 10_000
    """Other channels."""

    person_bytes: int = 200
    """Mean size of a person, in bytes."""
    auction_bytes: int = 500
    """Mean size of an auction, in bytes."""
    bid_bytes: int = 100
    """Mean size of a bid, in bytes; as in the reference, channel and url come on top."""
    side_input_rows: int = 10_000
    """Rows of the table that Q13 joins."""

    def __post_init__(self) -> None:
        for name in _COUNTS:
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; give 1 or more")
        for name in ("auction_lead", "person_lead", "base_time_ms", "side_input_rows"):
            require(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}; give 0 or more")
        for name in _SHARES:
            share = getattr(self, name)
            require(0 <= share <= 1, f"{name} is {share}; a share is from 0 to 1")
        for name in _BYTES:
            size = getattr(self, name)
            require(0 <= size <= TEXT_MAX, f"{name} is {size}; give 0 to {TEXT_MAX} bytes")
        require(
            self.out_of_order_group % PRIME != 0,
            f"groups of {self.out_of_order_group} would repeat events instead of shuffling them; "
            f"use a size that {PRIME} does not divide",
        )


def large_state(
    rate: int,
    *,
    active_s: int = 7_200,
    hot_every_s: int = 1,
    bid_bytes: int = 200,
    hot_auction_share: float = 0.5,
    hot_bidder_share: float = 0.75,
    side_input_rows: int = 10_000,
) -> NexmarkOptions:
    """Options for a state much larger than a cache, in seconds of event time at `rate`.

    Auctions and persons stay active for `active_s` and another one is hot every `hot_every_s`: two
    hours and one second in the measurements of keyed prefetching, with bids of 200 bytes. The
    hotter the share, the smaller the part of the state that is touched.
    """
    auctions_per_s = rate * AUCTIONS_PER_EPOCH / EPOCH
    persons_per_s = rate / EPOCH
    return NexmarkOptions(
        rate=rate,
        auctions_in_flight=max(1, round(active_s * auctions_per_s)),
        people_active=max(1, round(active_s * persons_per_s)),
        hot_auction_every=max(1, round(hot_every_s * auctions_per_s)),
        hot_person_every=max(1, round(hot_every_s * persons_per_s)),
        hot_auction_share=hot_auction_share,
        hot_bidder_share=hot_bidder_share,
        bid_bytes=bid_bytes,
        side_input_rows=side_input_rows,
    )
