"""Event numbers and what they say by themselves: kind, the newest ids, event time.

Of every 50 events the first is a person, the next three are auctions and the rest are bids. Ids are
counted from 0 here and from `FIRST_ID` in the rows.
"""

from __future__ import annotations

import numpy as np

from penstock_lab.workloads.seeded import Flags, Ints

EPOCH = 50
PERSONS_PER_EPOCH = 1
AUCTIONS_PER_EPOCH = 3
FIRST_ID = 1_000
PRIME = 953


def shuffled(n: Ints, group: int) -> Ints:
    """The event at each place of the stream: a fixed permutation inside each group."""
    place = n % group
    return n - place + place * PRIME % group


def is_person(event: Ints) -> Flags:
    flags: Flags = event % EPOCH < PERSONS_PER_EPOCH
    return flags


def is_auction(event: Ints) -> Flags:
    place = event % EPOCH
    flags: Flags = (place >= PERSONS_PER_EPOCH) & (place < PERSONS_PER_EPOCH + AUCTIONS_PER_EPOCH)
    return flags


def newest_person(event: Ints) -> Ints:
    """The last person known when the event happens; a person event knows itself."""
    return event // EPOCH


def newest_auction(event: Ints) -> Ints:
    """The last auction opened when the event happens, itself included; -1 before the first."""
    epoch, place = np.divmod(event, EPOCH)
    opened: Ints = np.clip(place - PERSONS_PER_EPOCH, -1, AUCTIONS_PER_EPOCH - 1)
    newest: Ints = epoch * AUCTIONS_PER_EPOCH + opened
    return newest


def elapsed_ms(event: Ints, rate: int) -> Ints:
    """Event time since event 0, in whole milliseconds, so that many events share one."""
    return event * 1_000 // rate
