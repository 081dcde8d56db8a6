"""Old events of a NEXMark run: auctions from the beginning, and the last of the bids on them.

A state that is large by its number of auctions would take millions of bids to come about. Bids
matter to it by the auctions and bidders they name, so only the last so many are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.nexmark.auctions import Auctions, Bids
from penstock_lab.workloads.nexmark.options import NexmarkOptions
from penstock_lab.workloads.nexmark.order import EPOCH, is_auction, is_person
from penstock_lab.workloads.seeded import Ints
from penstock_lab.workloads.traffic import stamped

SENT_AT_US = 1_800_000_000_000_000
ROWS_AT_ONCE = 20_000


def old_events(
    options: dict[str, Any],
    rate: int,
    seed: int,
    bids_from: int,
    until: int,
    *,
    has_auctions: bool,
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Auctions among events 0 to `until`, then bids among `bids_from` to `until`, in pieces.

    Each piece comes with the name of its stream; all rows are stamped with one time of sending.
    """
    made = NexmarkOptions(rate=rate, **options)
    if has_auctions:
        auctions = Auctions(made, seed)
        epochs = np.arange(0, until, EPOCH, dtype=np.int64)
        opened = np.sort(np.concatenate([epochs + place for place in range(EPOCH // 10)]))
        opened = opened[is_auction(opened) & (opened < until)]
        for events in _pieces(opened):
            yield "auctions", stamped(auctions.rows(events), SENT_AT_US)
    bids = Bids(made, seed)
    last = np.arange(bids_from, until, dtype=np.int64)
    for events in _pieces(last[~(is_person(last) | is_auction(last))]):
        yield "bids", stamped(bids.rows(events), SENT_AT_US)


def _pieces(events: Ints) -> Iterator[Ints]:
    for start in range(0, len(events), ROWS_AT_ONCE):
        yield events[start : start + ROWS_AT_ONCE]
