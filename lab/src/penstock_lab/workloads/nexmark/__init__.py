"""NEXMark: persons who open auctions and bid on them.

Follows the reference generator in proportions, ids, skew, prices and sizes, and departs from it in
one point: every value is a function of the seed and the event's number, so a file of events can be
made again.
"""

from __future__ import annotations

from penstock_lab.workloads.nexmark.auctions import AUCTIONS, BIDS
from penstock_lab.workloads.nexmark.generator import (
    SIDE_INPUT,
    Events,
    Nexmark,
    RowNumbers,
    side_input,
)
from penstock_lab.workloads.nexmark.options import NexmarkOptions, large_state
from penstock_lab.workloads.nexmark.persons import PERSONS

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
