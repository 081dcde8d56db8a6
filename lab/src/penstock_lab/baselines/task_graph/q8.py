"""NEXMark Q8 as a task graph: persons who joined and opened an auction in one window of 10 s.

`split` routes persons by id and auctions by seller; `join` writes a person once, as soon as both
have come. So a result waits for no window to close, and its latency is the protocol's.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock_lab.baselines.task_graph.graph import Emit, Graph, Stage
from penstock_lab.baselines.task_graph.messages import Row
from penstock_lab.baselines.task_graph.state import State

PERSON, AUCTION = 0, 1
WINDOW_US = 10_000_000
ID_BITS = 32
# A row of the source: PERSON, id, name, at_us, sent_us, padding
#                  or: AUCTION, seller, None, at_us, sent_us, padding


class Split:
    """Rows by person, without what the query does not use."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None:
        for row in rows:
            emit(row[1], row[:-1])

    def sweep(self, passed_us: int, state: State) -> None:
        """Nothing to sweep: the query has no state."""


class Join:
    """By window and person: `joined` has names, `sold` send times; each ends with its window."""

    def process(self, rows: Sequence[Row], state: State, emit: Emit) -> None:
        joined, sold = state.table("joined"), state.table("sold")
        for kind, person, name, at_us, sent_us in rows:
            window = at_us // WINDOW_US
            key = window << ID_BITS | person
            if kind == PERSON:
                state.put("joined", key, (name, sent_us))
                other = sold.get(key)
                if other is not None:
                    emit(person, (person, name, window * WINDOW_US, max(sent_us, other)))
            elif key not in sold:
                state.put("sold", key, sent_us)
                known = joined.get(key)
                if known is not None:
                    emit(person, (person, known[0], window * WINDOW_US, max(sent_us, known[1])))

    def sweep(self, passed_us: int, state: State) -> None:
        first = passed_us // WINDOW_US << ID_BITS
        for table in ("joined", "sold"):
            for key in [key for key in state.table(table) if key < first]:
                state.drop(table, key)


def graph(tasks: int = 2) -> Graph:
    return Graph(
        "q8",
        (
            Stage("split", "events", "by_person", 1, Split, is_stateful=False),
            Stage("join", "by_person", "q8", tasks, Join),
        ),
    )
