"""NEXMark Q4 as a task graph: the mean, over auctions, of the highest bid on each, by category.

`split` routes auctions and bids by auction. `highest` brings them together and writes every rise
of an auction's highest bid; a bid counts if it was made while its auction was open, both ends
included, and waits if it comes first. `mean` writes a row for every rise: the category's mean, what
it is made of, and the number of the row, so that one that is missing or there twice shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.baselines.task_graph.graph import Emit, Graph, Stage
from penstock_lab.baselines.task_graph.messages import Row
from penstock_lab.baselines.task_graph.state import State

AUCTION, BID = 0, 1
# A row of the source: AUCTION, id, category, opens_us, expires_us, sent_us, padding
#                  or: BID, auction, price, at_us, sent_us, padding


class Split:
    """Rows by auction, without what the query does not use."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None:
        for row in rows:
            emit(row[1], row[:-1])

    def sweep(self, passed_us: int, state: State) -> None:
        """Nothing to sweep: the query has no state."""


class Highest:
    """`open`: category, opens, expires, highest price, send time; `early`: bids that wait."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None:
        opened, early = state.table("open"), state.table("early")
        for row in rows:
            if row[0] == AUCTION:
                _, auction, category, opens_us, expires_us, sent_us = row
                waited = early.get(auction, ())
                if waited:
                    state.drop("early", auction)
                self._bid(
                    auction, (category, opens_us, expires_us, 0), sent_us, waited, state, emit
                )
                continue
            _, auction, price, at_us, sent_us = row
            known = opened.get(auction)
            if known is None:
                state.put("early", auction, (*early.get(auction, ()), (price, at_us, sent_us)))
            else:
                self._bid(auction, known, sent_us, ((price, at_us, sent_us),), state, emit)

    def _bid(
        self, auction: int, known: Row, sent_us: int, bids: Sequence[Row], state: State, emit: Emit
    ) -> None:
        category, opens_us, expires_us, before = known
        price = before
        for bid_price, at_us, bid_sent_us in bids:
            if opens_us <= at_us <= expires_us and bid_price > price:
                price, sent_us = bid_price, max(sent_us, bid_sent_us)
        if price != before or auction not in state.table("open"):
            state.put("open", auction, (category, opens_us, expires_us, price))
        if price != before:
            emit(category, (auction, category, price - before, 0 if before else 1, sent_us))

    def sweep(self, passed_us: int, state: State) -> None:
        over = [key for key, known in state.table("open").items() if known[2] < passed_us]
        for auction in over:
            state.drop("open", auction)
        # A bid that waits needs an auction that opened before it, and none such can come.
        lost = [
            key
            for key, bids in state.table("early").items()
            if max(bid[1] for bid in bids) < passed_us
        ]
        for auction in lost:
            state.drop("early", auction)


class Mean:
    """`total`: sum of highest prices, auctions, rows written so far."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None:
        totals = state.table("total")
        for _, category, price_change, auctions_change, sent_us in rows:
            total, auctions, written = totals.get(category, (0, 0, 0))
            total, auctions = total + price_change, auctions + auctions_change
            state.put("total", category, (total, auctions, written + 1))
            emit(category, (category, total / auctions, written + 1, sent_us))

    def sweep(self, passed_us: int, state: State) -> None:
        """Five categories stay for ever."""


def graph(tasks: int = 2) -> Graph:
    return Graph(
        "q4",
        (
            Stage("split", "events", "by_auction", 1, Split, is_stateful=False),
            Stage("highest", "by_auction", "rises", tasks, Highest),
            Stage("mean", "rises", "q4", 1, Mean),
        ),
    )
