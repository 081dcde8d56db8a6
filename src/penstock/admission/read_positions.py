"""Positions up to which queries have read their inputs, as their questions to admission tell it.

The log keeps a position for each query and input, so that nothing is trimmed which the query would
read again after a crash. When a query asks what follows the end of batch i, batch i - 2 is
committed, and no more is certain: so the position kept is the third last one it asked about. Where
several of its sources read one stream, the third last of each counts, and the least of these is
kept.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.clock import Clock
from penstock.log.operations import Move, MovePosition
from penstock.model.ids import Instance, Lsn, QueryId, StreamName

LAG = 3
KEEP_S = 5.0
"""How often a position that has moved is kept."""
HEARD_S = 60.0
"""How often it is kept that a query at one position is still there."""
POSITIONS_MAX = 10_000


class Asker(NamedTuple):
    """One run of a query and one of its inputs. A new run may have been reset: it begins anew."""

    query: QueryId
    instance: Instance
    stream: StreamName


@dataclass
class _AskedPositions:
    """The positions each source asked about last, oldest first, and when one was kept."""

    kept_at_s: float
    asked: dict[int, list[Lsn]] = field(default_factory=dict)
    kept: Lsn | None = None

    def add(self, source: int, after: Lsn) -> None:
        asked = self.asked[source]
        if after < asked[-1]:
            self.asked[source] = [after]
        elif after > asked[-1]:
            self.asked[source] = [*asked, after][-LAG:]

    def safe(self) -> Lsn | None:
        """A position up to which every source's batches are committed; None if that is unknown."""
        histories = self.asked.values()
        if any(len(asked) < LAG for asked in histories):
            return None
        return min(asked[0] for asked in histories)


class ReadPositions:
    """Positions of queries, as one server has heard of them. Used on its event loop only.

    Who was not heard of longest is forgotten at the bound: its next question begins anew, and what
    the log keeps for it stays until then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: OrderedDict[Asker, _AskedPositions] = OrderedDict()

    def is_known(self, asker: Asker, source: int = 0) -> bool:
        history = self._positions.get(asker)
        return history is not None and source in history.asked

    def registered(self, asker: Asker, after: Lsn, source: int = 0) -> None:
        """The log holds the stream for the query, of which a source asks about `after` now."""
        fresh = _AskedPositions(self._clock.monotonic_s())
        self._positions.setdefault(asker, fresh).asked[source] = [after]
        if len(self._positions) > POSITIONS_MAX:
            self._positions.popitem(last=False)

    def asked(self, asker: Asker, after: Lsn, source: int = 0) -> MovePosition | None:
        """The positions to keep in the log now, if any; the caller need not wait for it."""
        history = self._positions[asker]
        self._positions.move_to_end(asker)
        history.add(source, after)
        now_s = self._clock.monotonic_s()
        passed_s = now_s - history.kept_at_s
        safe = history.safe()
        is_news = safe is not None and safe != history.kept
        if passed_s < (KEEP_S if is_news else HEARD_S):
            return None
        history.kept, history.kept_at_s = safe, now_s
        return MovePosition("query", asker.query, (Move(asker.stream, safe),))
