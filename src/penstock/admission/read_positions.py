"""How far queries have read their inputs, as their questions to admission tell it.

The log keeps a position for each query and input, so that nothing is trimmed which the query would
read again after a crash. When a query asks what follows the end of batch i, batch i - 2 is
committed, and no more is certain: so the position kept is the third last one it asked about.
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
    """The positions asked about last, oldest first, and when one was kept."""

    asked: list[Lsn] = field(default_factory=list)
    kept: Lsn | None = None
    kept_at_s: float = 0.0


class ReadPositions:
    """What one server has heard of queries. Used on its event loop only.

    Who was not heard of longest is forgotten at the bound: its next question begins anew, and what
    the log keeps for it stays until then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._positions: OrderedDict[Asker, _AskedPositions] = OrderedDict()

    def is_known(self, asker: Asker) -> bool:
        return asker in self._positions

    def registered(self, asker: Asker, after: Lsn) -> None:
        """The log holds the stream for the query; it asks about `after` now."""
        self._positions[asker] = _AskedPositions([after], None, self._clock.monotonic_s())
        if len(self._positions) > POSITIONS_MAX:
            self._positions.popitem(last=False)

    def asked(self, asker: Asker, after: Lsn) -> MovePosition | None:
        """What to keep in the log now, if anything; the caller need not wait for it."""
        history = self._positions[asker]
        self._positions.move_to_end(asker)
        if after < history.asked[-1]:
            history.asked = [after]
        elif after > history.asked[-1]:
            history.asked = [*history.asked, after][-LAG:]
        now_s = self._clock.monotonic_s()
        passed_s = now_s - history.kept_at_s
        safe = history.asked[0] if len(history.asked) == LAG else None
        is_news = safe is not None and safe != history.kept
        if passed_s < (KEEP_S if is_news else HEARD_S):
            return None
        history.kept, history.kept_at_s = safe, now_s
        return MovePosition("query", asker.query, (Move(asker.stream, safe),))
