"""The other queries on generated and recorded events, their driver killed half-way.

DuckDB agrees with every batch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock_lab import queries
from penstock_lab.experiment.campaigns import fill
from penstock_lab.measure import query_groups as groups
from penstock_lab.measure.killed_driver import Size
from penstock_lab.workloads.replay import data_folder, missing, samples_folder
from support.servers.processes import QUICK_START
from support.servers.redis_server import RedisServer
from support.sources import ROOT
from support.spark.mechanisms_off import EARLY_ANSWERS, PLAIN_BATCHES
from support.tried_queries import Done, assert_right, tried

# What the first driver leaves with our mechanisms, the second one goes on from without them.
OTHERS = Size(20, 5_000, QUICK_START, {**QUICK_START, **PLAIN_BATCHES, **EARLY_ANSWERS})
RECORDED = ("lr_join_30_5", "lr_speed_30_10", "lr_count_20_5", "cm_category_60_10", "cm_job_60_5")


@pytest.fixture(scope="module")
def store(redis_if_installed: RedisServer | None) -> str | None:
    """The URL of a Redis that holds the campaigns, if there is one."""
    if redis_if_installed is None:
        return None
    fill(redis_if_installed.url, groups.SEED)
    return redis_if_installed.url


@pytest.fixture(scope="module")
def samples() -> Path:
    """LightSaber's samples, there or not."""
    return samples_folder(data_folder(os.environ), ROOT)


@pytest.fixture(scope="module")
def others(
    store: str | None,
    samples: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Done]:
    """Linear Road, cluster monitoring and, where they can be, ads and recordings, in one driver."""
    parts = [groups.linear_road(), groups.cluster()]
    if store is not None:
        parts.append(groups.ads(store))
    if missing(samples) is None:
        parts.append(groups.recorded(samples).only(frozenset(RECORDED)))
    group = groups.merged("others", *parts)
    yield from tried(group, OTHERS, tmp_path_factory.mktemp("others"))


@pytest.mark.parametrize("name", [*queries.LINEAR_ROAD, *queries.CLUSTER])
def test_a_road_or_cluster_query_is_right_after_every_batch(others: Done, name: str) -> None:
    assert_right(others, name)


@pytest.mark.parametrize("name", RECORDED)
def test_a_query_over_recorded_events_is_right_after_every_batch(
    samples: Path, others: Done, name: str
) -> None:
    why = missing(samples)
    if why is not None:
        pytest.skip(f"skipped, because {why}")
    assert_right(others, f"{groups.REPLAY}.{name}")


@pytest.mark.usefixtures("redis_server")
def test_the_ad_query_is_right_after_every_batch(others: Done) -> None:
    assert_right(others, "ysb")


def test_windows_that_slide_differently_hold_different_pairs(others: Done) -> None:
    rows = [others.answered[f"lr_join_30_{slide}"].rows for slide in ("1", "5", "tumbling")]
    assert rows == sorted(set(rows), reverse=True)
