"""The three streams of a range of events, and the table that Q13 joins."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from penstock_lab.workloads.nexmark.auctions import Auctions, Bids
from penstock_lab.workloads.nexmark.options import NexmarkOptions
from penstock_lab.workloads.nexmark.order import is_auction, is_person, shuffled
from penstock_lab.workloads.nexmark.persons import Persons
from penstock_lab.workloads.seeded import Ints, numbers

SIDE_INPUT = pa.schema([("key", pa.int64()), ("value", pa.string())])


class Events(NamedTuple):
    """The rows of a range of events, by kind, each in stream order."""

    persons: pa.RecordBatch
    auctions: pa.RecordBatch
    bids: pa.RecordBatch


class RowNumbers(NamedTuple):
    """The place in the stream of every row of `Events`, row by row."""

    persons: Ints
    auctions: Ints
    bids: Ints


class Nexmark:
    """Events numbered from 0 in the order they are sent.

    `events` knows nothing of when they are sent. To stamp them, take the place of each row from
    `row_numbers`, its time from a schedule, and add the column:

        at = schedule.intended_sends_us(nexmark.row_numbers(first, count).bids)
        bids = traffic.stamped(events.bids, started_us + at)
    """

    def __init__(self, options: NexmarkOptions | None = None, seed: int = 7) -> None:
        self.options = options if options is not None else NexmarkOptions()
        self.seed = seed
        self._persons = Persons(self.options, seed)
        self._auctions = Auctions(self.options, seed)
        self._bids = Bids(self.options, seed)

    def events(self, first: int, count: int) -> Events:
        """The rows of the events at places `first` to `first + count - 1`."""
        kinds = self.row_numbers(first, count)
        group = self.options.out_of_order_group
        return Events(
            self._persons.rows(shuffled(kinds.persons, group)),
            self._auctions.rows(shuffled(kinds.auctions, group)),
            self._bids.rows(shuffled(kinds.bids, group)),
        )

    def row_numbers(self, first: int, count: int) -> RowNumbers:
        """The numbers of the rows of `events(first, count)` in the stream."""
        n = numbers(first, count)
        event = shuffled(n, self.options.out_of_order_group)
        person, auction = is_person(event), is_auction(event)
        return RowNumbers(n[person], n[auction], n[~(person | auction)])

    def side_input(self) -> pa.RecordBatch:
        """The table Q13 joins by `auction % rows`."""
        return side_input(self.options.side_input_rows)


def side_input(rows: int = 10_000) -> pa.RecordBatch:
    """Rows i, i for i from 0; the value is a text, as in the reference's file."""
    keys = np.arange(rows, dtype=np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(keys), pa.array(keys).cast(pa.string())], schema=SIDE_INPUT
    )
