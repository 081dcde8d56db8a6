"""Prefetching on a model of one stateful operator behind a static join, batch by batch.

The very controller that the driver runs is told what a batch counted, and its answer holds from
the next batch on. The join lies between the rows in the log, candidate A, and all others: from
`drops_from` on it drops rows, so that what A hints is not always read; from `quick_from` on reads
of the store are quicker, so that a later candidate is early enough. The same world always gives
the same outcome.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable

import msgspec

from penstock.prefetch.controller import (
    CANDIDATES,
    Candidate,
    Controller,
    ControlTerms,
    OperatorBatch,
    Prefetches,
)

BOUNDS_US = tuple(round(1.25**step) for step in range(4, 70))
"""Bounds by which access times are counted."""


class StaticJoin(msgspec.Struct, frozen=True):
    """A world: rows of each batch, keys, entries of the cache, and the times of a batch.

    Rows wait in the log while the batch before them runs; a batch then is planned, maps its rows,
    shuffles them and reads state for them. All times are microseconds.
    """

    batches: int = 60
    rows: int = 400
    keys: int = 20_000
    cached_entries: int = 2_000
    planning_us: int = 40_000
    map_us: int = 30_000
    shuffle_us: int = 20_000
    read_us: int = 30_000
    slow_us: int = 35_000
    quick_us: int = 4_000
    drops_from: int = 20
    drops_share: float = 0.3
    quick_from: int = 40
    terms: ControlTerms = ControlTerms()

    @property
    def batch_us(self) -> int:
        return self.planning_us + self.map_us + self.shuffle_us + self.read_us


class BatchOutcome(msgspec.Struct, frozen=True):
    """A simulated batch: who hinted, how many reads missed, and the switch after it."""

    batch: int
    active: tuple[Candidate, ...]
    reads: int
    misses: int
    used: int
    unused: int
    reason: str | None


class Row(msgspec.Struct, frozen=True):
    """A row of a batch: when each candidate sees it, when its state is read, if it gets there."""

    key: int
    seen_at_us: dict[Candidate, int]
    read_at_us: int
    is_dropped: bool
    access_us: int


def simulate_join(world: StaticJoin, seed: int = 0) -> list[BatchOutcome]:
    """The batches of a world, in order."""
    chance = random.Random(seed)
    cache: OrderedDict[int, None] = OrderedDict()
    controller = Controller(CANDIDATES, world.terms)
    outcomes = []
    for number in range(world.batches):
        active = controller.active
        rows = [_row(world, number, chance) for _ in range(world.rows)]
        facts = _run(world, number, active, rows, cache)
        controller, switch = controller.after(facts, CANDIDATES)
        used = sum(each.used for each in facts.prefetches.values())
        unused = sum(each.unused for each in facts.prefetches.values())
        reads = sum(not row.is_dropped for row in rows)
        reason = None if switch is None else switch.reason
        outcomes.append(BatchOutcome(number, active, reads, facts.misses, used, unused, reason))
    return outcomes


def _row(world: StaticJoin, number: int, chance: random.Random) -> Row:
    """One row; the batch is cut at 0, and rows come while the batch before it runs."""
    mapped_at_us = world.planning_us + chance.randrange(world.map_us)
    reading_from_us = world.planning_us + world.map_us + world.shuffle_us
    read_at_us = reading_from_us + chance.randrange(world.read_us)
    usual_us = world.quick_us if number >= world.quick_from else world.slow_us
    return Row(
        chance.randrange(world.keys),
        {
            "A": -chance.randrange(world.batch_us),
            "B": mapped_at_us,
            "C": world.planning_us + world.map_us,
            "D": reading_from_us,
        },
        read_at_us,
        number >= world.drops_from and chance.random() < world.drops_share,
        round(usual_us * chance.uniform(0.5, 1.0)),
    )


def _run(
    world: StaticJoin,
    number: int,
    active: tuple[Candidate, ...],
    rows: list[Row],
    cache: OrderedDict[int, None],
) -> OperatorBatch:
    """Runs a batch on the cache and counts as executors do."""
    # Of several rows with one key, one that the join lets through comes last and counts.
    in_turn = sorted(rows, key=lambda row: not row.is_dropped)
    missing = {row.key: row for row in in_turn if row.key not in cache}
    read_keys = {row.key for row in rows if not row.is_dropped}
    hinted: dict[Candidate, set[int]] = {}
    in_time: set[int] = set()
    for row in missing.values():
        # The first who sees the row asks for its state; only A sees those that the join drops.
        seeing = [each for each in active if each == "A" or not row.is_dropped]
        if seeing:
            hinted.setdefault(seeing[0], set()).add(row.key)
            if row.seen_at_us[seeing[0]] + row.access_us <= row.read_at_us:
                in_time.add(row.key)
    misses = sum(key not in in_time for key in missing.keys() & read_keys)
    _keep(cache, (row.key for row in rows if not row.is_dropped), world.cached_entries)
    prefetches = {
        candidate: Prefetches(len(keys & read_keys), len(keys - read_keys))
        for candidate, keys in hinted.items()
    }
    return OperatorBatch(
        number,
        len(read_keys),
        misses,
        prefetches,
        {candidate: _slack_us(candidate, rows) for candidate in CANDIDATES},
        _histogram(row.access_us for row in missing.values()),
    )


def _keep(cache: OrderedDict[int, None], keys: Iterable[int], entries_max: int) -> None:
    """Puts keys into the cache, the oldest out."""
    for key in keys:
        cache[key] = None
        cache.move_to_end(key)
    while len(cache) > entries_max:
        cache.popitem(last=False)


def _slack_us(candidate: Candidate, rows: list[Row]) -> int:
    """The time from hint to read that 99 % of the rows have."""
    slack = sorted(row.read_at_us - row.seen_at_us[candidate] for row in rows)
    return max(0, slack[len(slack) // 100])


def _histogram(times_us: Iterable[int]) -> dict[int, int]:
    """Times counted by the first bound that they do not exceed."""
    counts: dict[int, int] = {}
    for time_us in times_us:
        bound_us = next((each for each in BOUNDS_US if time_us <= each), BOUNDS_US[-1])
        counts[bound_us] = counts.get(bound_us, 0) + 1
    return counts
