"""Ages of waiting rows, which neither a jump of the clock nor another machine's clock upsets."""

from __future__ import annotations

from typing import NamedTuple


class FirstWaiting(NamedTuple):
    """The first commit that waits in a stream: its place and the log's stamp.

    `older_ms`: by how much the oldest origin of what waits precedes that stamp, where it counts.
    """

    lsn: int
    arrived_at_ms: int
    older_ms: int = 0


class _Seen(NamedTuple):
    lsn: int
    age_ms: float
    at_ms: float


class Ages:
    """The ages of what waits in each source of one query.

    A commit's stamp is compared with the wall clock once, when it is first seen, and within what
    the monotonic clock allows: it cannot be older than the last look at which it was not there, nor
    younger than one at which it was. From then on it ages by the monotonic clock.
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._looks: dict[int, tuple[float, int]] = {}

    def age_ms(
        self, source: int, first: FirstWaiting | None, wall_ms: int, now_ms: float, latest: int
    ) -> float | None:
        """The age of the oldest row that waits in `source`; None if nothing waits, which is kept as
        a look, too."""
        looked = self._looks.get(source)
        self._looks[source] = (now_ms, latest)
        if first is None:
            self._seen.pop(source, None)
            return None
        seen = self._seen.get(source)
        if seen is None or seen.lsn != first.lsn:
            age_ms = max(float(wall_ms - first.arrived_at_ms), 0.0)
            if looked is not None:
                looked_at_ms, latest_then = looked
                since_ms = now_ms - looked_at_ms
                age_ms = min(age_ms, since_ms) if first.lsn > latest_then else max(age_ms, since_ms)
            seen = self._seen[source] = _Seen(first.lsn, age_ms, now_ms)
        return seen.age_ms + (now_ms - seen.at_ms) + first.older_ms
