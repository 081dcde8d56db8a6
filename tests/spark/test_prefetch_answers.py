"""Answers of stateful queries with prefetching, their driver killed half-way: DuckDB agrees.

The same queries without it are in the files of tests beside this one. Each mode has a driver of its
own, as the first store of a process decides on its cache. The queries are divided over the modes:
the suite of the state store provider holds the cache itself to a plain map in every mode.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import pytest

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


@dataclass(frozen=True)
class Mode:
    """Settings of prefetching, and the queries that are run with them."""

    conf: Mapping[str, str]
    queries: frozenset[str]


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
        frozenset(("q4", "q18", "lr_join_30_5")),
    ),
    # Values of one store at a time, and none of them for long.
    "one entry": Mode(
        {KEY: "B", f"{KEY}.cache.bytes": "400", f"{KEY}.hot.threshold": "255"},
        frozenset(("q5", "q20", more_queries.PAIRS)),
    ),
    "write back": Mode(
        {KEY: "D", f"{KEY}.cache.writes": "back", f"{KEY}.cache.bytes": "200000"},
        frozenset(("q19", "lr_count_20_5", "lr_join_30_5")),
    ),
}
RUNS = [(mode, query) for mode in sorted(MODES) for query in sorted(MODES[mode].queries)]


@pytest.fixture(scope="module")
def prefetching(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Done]:
    """The queries of one mode, run to their end with a kill in the middle."""
    mode = MODES[request.param]
    more = Group("more", (), (Asked(more_queries.bidding_pairs()),))
    merged = groups.merged("prefetching", groups.nexmark(), groups.linear_road(), more)
    size = Size(COMMITS, EVENTS, {**QUICK_START, **mode.conf})
    with pytest.MonkeyPatch.context() as patch:
        for name, answer in more_queries.EXPECTED.items():
            patch.setitem(cast("dict[str, answers.Answer]", answers.EXPECTED), name, answer)
        folder = tmp_path_factory.mktemp("prefetching")
        yield from tried(merged.only(mode.queries), size, folder, counts_reads=True)


# With a narrower scope every query would have a driver of its own.
@pytest.mark.parametrize(("prefetching", "name"), RUNS, indirect=["prefetching"], scope="module")
def test_a_query_with_prefetching_is_right_after_every_batch(prefetching: Done, name: str) -> None:
    answered = prefetching.answered[name]
    assert answered.error is None, answered.error
    assert answered.different == 0, "\n".join(answered.differences)
    assert answered.rows > 0
    assert 0 < answered.batches_at_the_kill < answered.batches
    assert answered.instance == 2
    # After the kill, of all queries of the mode.
    assert sum(reads.hint_bytes for reads in prefetching.reads.values()) > 0


def test_every_query_is_run_in_one_of_the_modes() -> None:
    nexmark, linear_road = {"q4", "q5", "q18", "q19", "q20"}, {"lr_join_30_5", "lr_count_20_5"}
    assert {query for _, query in RUNS} == nexmark | linear_road | more_queries.ALL.keys()
