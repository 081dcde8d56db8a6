"""NEXMark: persons who open auctions and bid on them.

Follows the reference generator in proportions, ids, skew, prices and sizes, and departs from it in
one point: every value is a function of the seed and the event's number, so a file of events can be
made again.
"""

from __future__ import annotations

from penstock.workloads.nexmark.generator import (
    SIDE_INPUT,
    Events,
    Nexmark,
    RowNumbers,
    side_input,
)
from penstock.workloads.nexmark.options import NexmarkOptions, large_state
from penstock.workloads.nexmark.persons import PERSONS
from penstock.workloads.nexmark.sales import AUCTIONS, BIDS

__all__ = [
    "AUCTIONS",
    "BIDS",
    "PERSONS",
    "SIDE_INPUT",
    "Events",
    "Nexmark",
    "NexmarkOptions",
    "RowNumbers",
    "large_state",
    "side_input",
]
