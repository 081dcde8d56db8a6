"""Answers of stateful queries with prefetching, their driver killed half-way: DuckDB agrees.

Each mode has a driver of its own, as the first store of a process decides on its cache; every query
is run in every mode, and what the second driver has counted of it says that the mode was at work.
Without prefetching the deduplication is run here, the others in the files of tests beside this one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from penstock_lab.experiment.state_reads import CacheReads, summed
from penstock_lab.measure import query_groups as groups
from penstock_lab.measure.killed_driver import Size
from penstock_lab.measure.query_groups import Asked, Group
from penstock_lab.oracle import answers
from support import more_queries
from support.servers.processes import QUICK_START
from support.tried_queries import Done, tried

KEY = "spark.penstock.prefetch"
ROCKSDB = "spark.sql.streaming.stateStore.rocksdb"
COMMITS, EVENTS = 10, 2_000
QUERIES = ("q4", "q5", "q18", "q19", "q20", "lr_join_30_5", "lr_count_20_5", more_queries.PAIRS)


@dataclass(frozen=True)
class Mode:
    """Settings of prefetching, and what says that they were at work."""

    conf: Mapping[str, str]
    is_at_work: Callable[[CacheReads], bool]
    queries: tuple[str, ...] = QUERIES


MODES = {
    # State is in files after every batch, so that reads miss and the controller has keys hinted.
    "auto": Mode(
        {
            KEY: "auto",
            f"{KEY}.reads": "slow1ms",
            f"{KEY}.cache.bytes": "20000",
            f"{ROCKSDB}.blockCacheSizeMB": "0",
            f"{ROCKSDB}.changelogCheckpointing.enabled": "false",
        },
        lambda reads: reads.hint_bytes > 0 < reads.used,
    ),
    # Values of one store at a time, and none of them for long.
    "one entry": Mode(
        {KEY: "B", f"{KEY}.cache.bytes": "400", f"{KEY}.hot.threshold": "255"},
        lambda reads: reads.hint_bytes > 0 < reads.evictions,
    ),
    "write back": Mode(
        {KEY: "D", f"{KEY}.cache.writes": "back", f"{KEY}.cache.bytes": "200000"},
        lambda reads: reads.hint_bytes > 0 < reads.kept_writes,
    ),
    "off": Mode(
        {KEY: "off", f"{KEY}.cache": "off"},
        lambda reads: reads.hint_bytes == reads.hits == reads.misses == 0,
        (more_queries.PAIRS,),
    ),
}


@dataclass(frozen=True)
class Tried:
    """The queries as they ran in one mode."""

    mode: Mode
    done: Done


@pytest.fixture
def prefetching(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Tried]:
    """The queries of one mode, run to their end with a kill in the middle."""
    mode = MODES[request.param]
    more = Group("more", (), (Asked(more_queries.bidding_pairs()),))
    merged = groups.merged("prefetching", groups.nexmark(), groups.linear_road(), more)
    size = Size(COMMITS, EVENTS, {**QUICK_START, **mode.conf})
    for name, answer in more_queries.EXPECTED.items():
        monkeypatch.setitem(cast("dict[str, answers.Answer]", answers.EXPECTED), name, answer)
    chosen = merged.only(frozenset(mode.queries))
    for done in tried(chosen, size, tmp_path / "prefetching", counts_reads=True):
        yield Tried(mode, done)


@pytest.mark.parametrize("prefetching", sorted(MODES), indirect=True)
def test_queries_of_every_mode_are_right_after_every_batch(prefetching: Tried) -> None:
    done, queries = prefetching.done, prefetching.mode.queries
    assert done.answered.keys() == set(queries)
    wrong = {
        name: (answered.error, answered.differences)
        for name, answered in done.answered.items()
        if not answered.is_right
    }
    assert wrong == {}
    for answered in done.answered.values():
        assert answered.rows > 0
        assert 0 < answered.batches_at_the_kill < answered.batches
        assert answered.instance == 2
    # Counted after the kill, of all stages of a query.
    reads = {
        name: summed([done.reads[stage.name] for stage in done.asked(name).query.stages])
        for name in queries
    }
    idle = {name: each for name, each in reads.items() if not prefetching.mode.is_at_work(each)}
    assert idle == {}, "the mode was not at work"
