"""Counts of a running query's prefetching, made of what the plug-in's driver has added up.

Times between bounds of the plug-in's histogram are given as the upper bound, so that a percentile
is at most a fifth too large.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

US_IN_MS = 1_000


class PrefetchSwitch(msgspec.Struct, frozen=True):
    """A change of the places that keys are hinted from: after which batch, to which, and why."""

    batch: int
    active: tuple[str, ...]
    reason: str


class OperatorPrefetch(msgspec.Struct, frozen=True):
    """Prefetching for one stateful operator, since its query was started.

    Attributes:
        operator: Spark's number of the operator.
        name: Node of the operator in the plan; empty where no batch was planned with lookahead.
        candidates: Places of the plan from which the operator's keys can be hinted.
        left_out: Sentences on why other places, or the operator, are left alone.
        hits: Reads by tasks that the cache answered, fetches that were waited for included.
        misses: Reads by tasks that went to RocksDB.
        waited: Hits that had to wait for a fetch under way.
        used: Prefetched entries that a task came to read, by the candidate that hinted them.
        unused: Prefetched entries that nobody read, by candidate.
        hinted: Keys in hints, by candidate.
        suppressed: Keys that were not hinted because they are hot.
        dropped: Keys of hints that were over a bound, or not fetched in time.
        late: Keys of hints that came when the batch they were for was committed.
        bytes: Size of the operator's part of all caches.
        evictions: Entries that made room for others.
        kept_writes: Writes that stayed in the cache, to be written later.
        hint_bytes: Size of the keys in hints, and their times.
        path_us: Time in which tasks read RocksDB themselves or waited for a fetch under way.
        access_us: Single reads of RocksDB, counted by the time that none took longer than.
        slack_us: Of each of the last batches and each candidate, the time from hint to read that
            99 % of rows had, if those of a task came evenly.
        active: Candidates that hint now.
        discarded: Candidates that were given up because their hints were not all read.
        switches: The last changes of `active`, newest last.
    """

    operator: int
    name: str
    candidates: tuple[str, ...]
    left_out: tuple[str, ...]
    hits: int
    misses: int
    waited: int
    used: dict[str, int]
    unused: dict[str, int]
    hinted: dict[str, int]
    suppressed: int
    dropped: int
    bytes: int
    evictions: int
    access_us: dict[int, int]
    slack_us: tuple[dict[str, int], ...]
    active: tuple[str, ...]
    discarded: tuple[str, ...]
    switches: tuple[PrefetchSwitch, ...]
    hint_bytes: int = 0
    path_us: int = 0
    late: int = 0
    kept_writes: int = 0

    @property
    def hit_ratio(self) -> float | None:
        """Hits over reads; None without reads."""
        return _ratio(self.hits, self.hits + self.misses)

    @property
    def unused_ratio(self) -> float | None:
        """Prefetched entries that nobody read, over all that are judged; None without any."""
        unused = sum(self.unused.values())
        return _ratio(unused, unused + sum(self.used.values()))

    def access_ms(self, percentile: float) -> float | None:
        """A percentile of the times that reads of RocksDB took; None without reads."""
        bound_us = weighted_percentile(self.access_us, percentile)
        return None if bound_us is None else bound_us / US_IN_MS

    def slack_ms(self, candidate: str, percentile: float) -> float | None:
        """A percentile over the last batches of a candidate's slack; None where it has none."""
        slack_us = [batch[candidate] for batch in self.slack_us if candidate in batch]
        bound_us = weighted_percentile({us: slack_us.count(us) for us in slack_us}, percentile)
        return None if bound_us is None else bound_us / US_IN_MS


class RelayedHints(msgspec.Struct, frozen=True):
    """Blocks of hints from one executor for the state of another, of all queries of the driver.

    Attributes:
        passed_on: Blocks that the driver has sent to the executor with the state.
        arrived: Blocks that such an executor has taken.
        dropped: Blocks for which there was no room, or whose state is loaded nowhere.
    """

    passed_on: int = 0
    arrived: int = 0
    dropped: int = 0


class QueryPrefetch(msgspec.Struct, frozen=True):
    """Prefetching for a running query: its operators, and the bytes that it has shuffled."""

    operators: tuple[OperatorPrefetch, ...] = ()
    shuffle_bytes: int = 0
    relayed: RelayedHints = RelayedHints()

    @property
    def hint_share(self) -> float | None:
        """Bytes of hints over bytes of shuffled rows; None where nothing was shuffled."""
        return _ratio(sum(each.hint_bytes for each in self.operators), self.shuffle_bytes)


def weighted_percentile(counts: Mapping[int, int], percentile: float) -> int | None:
    """The least value that a percentage of all counted ones do not exceed; None without any."""
    total = sum(counts.values())
    counted = 0
    for value in sorted(counts):
        counted += counts[value]
        if total > 0 and 100 * counted >= percentile * total:
            return value
    return None


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
