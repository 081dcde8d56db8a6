"""Every query on generated events, its driver killed half-way: DuckDB agrees with every batch."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from penstock import queries
from penstock.bench.answers import groups
from penstock.bench.answers.groups import Asked, Group
from penstock.bench.answers.trial import Answered, Size, Trial
from penstock.bench.campaigns import fill
from penstock.bench.children import Engine
from penstock.oracle.committed import Committed
from penstock.workloads.replay import data_folder, missing, samples_folder
from support import wrong_queries
from support.processes import QUICK_START
from support.redis_server import RedisServer
from support.sources import ROOT

EVENTS_MIN = 100_000
BATCHES_MIN = 20
# Two commits more than the others: Q6 has its first winners when four seconds have passed.
AUCTIONS = Size(22, 4_600, QUICK_START)
OTHERS = Size(20, 5_000, QUICK_START)
RECORDED = ("lr_join_30_5", "lr_speed_30_10", "lr_count_20_5", "cm_category_60_10", "cm_job_60_5")


@dataclass(frozen=True)
class Done:
    """A group that was run to its end with a kill in the middle; its server is still there."""

    trial: Trial
    answered: Mapping[str, Answered]

    def asked(self, name: str) -> Asked:
        return next(one for one in self.trial.group.asked if one.name == name)


def tried(group: Group, size: Size, folder: Path) -> Iterator[Done]:
    opening = partial(Engine, module="support.wrong_driver")
    with Trial(group, size, folder, opening=opening) as trial:
        yield Done(trial, {one.query: one for one in trial.run()})


@pytest.fixture(scope="module", autouse=True)
def tests_on_the_path() -> Iterator[None]:
    """So that the driver finds `support`."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), *([before] if before else [])])
    yield
    os.environ.pop("PYTHONPATH")
    if before:
        os.environ["PYTHONPATH"] = before


@pytest.fixture(scope="module")
def nexmark(tests_on_the_path: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    wrong = Group("wrong", (), (Asked(wrong_queries.q5_without_ties()),))
    group = groups.merged("nexmark", groups.nexmark(), wrong)
    yield from tried(group, AUCTIONS, tmp_path_factory.mktemp("nexmark"))


@dataclass(frozen=True)
class Store:
    """A filled Redis, or why there is none."""

    url: str | None
    missing: str = ""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    program = RedisServer.program()
    try:
        import redis  # noqa: F401
    except ImportError:
        yield Store(None, "the redis client is not installed; the extra `redis` has it")
        return
    if program is None:
        yield Store(None, "there is no redis-server; Debian's package has that name")
        return
    with RedisServer(program, tmp_path_factory.mktemp("redis")) as server:
        fill(server.url, groups.SEED)
        yield Store(server.url)


@pytest.fixture(scope="module")
def samples() -> Path:
    """LightSaber's samples, there or not."""
    return samples_folder(data_folder(os.environ), ROOT)


@pytest.fixture(scope="module")
def others(
    tests_on_the_path: None,
    store: Store,
    samples: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Done]:
    """Linear Road, cluster monitoring and, where they can be, ads and recordings, in one driver."""
    parts = [groups.linear_road(), groups.cluster()]
    if store.url is not None:
        parts.append(groups.ads(store.url))
    if missing(samples) is None:
        parts.append(groups.recorded(samples).only(frozenset(RECORDED)))
    group = groups.merged("others", *parts)
    yield from tried(group, OTHERS, tmp_path_factory.mktemp("others"))


def assert_right(done: Done, name: str) -> None:
    found = done.answered[name]
    assert found.error is None, found.error
    assert found.different == 0, "\n".join(found.differences)
    assert found.rows > 0
    assert found.events >= EVENTS_MIN
    assert found.batches >= BATCHES_MIN
    assert 0 < found.batches_at_the_kill < found.batches
    assert found.instance == 2


@pytest.mark.parametrize("name", queries.NEXMARK)
def test_a_nexmark_query_is_right_after_every_batch(nexmark: Done, name: str) -> None:
    assert_right(nexmark, name)


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


def test_the_ad_query_is_right_after_every_batch(store: Store, others: Done) -> None:
    if store.url is None:
        pytest.skip(f"skipped, because {store.missing}")
    assert_right(others, "ysb")


def test_windows_that_slide_differently_hold_different_pairs(others: Done) -> None:
    rows = [others.answered[f"lr_join_30_{slide}"].rows for slide in ("1", "5", "tumbling")]
    assert rows == sorted(set(rows), reverse=True)


def test_a_query_that_drops_ties_is_found_out(nexmark: Done) -> None:
    name = "q5_without_ties"
    reported = nexmark.answered[name]
    assert not reported.is_right
    assert 0 < reported.different < reported.rows
    found = nexmark.trial.check(nexmark.asked(name))
    first = found.differences[0]
    assert first.what == "expected but not committed"
    ids = nexmark.trial.ids[name]
    assert first.lsn == nexmark.trial.client.markers(ids[name])[first.batch]["lsn"]
    assert f"{name}, batch {first.batch} (marker {first.lsn})" in reported.differences[0]
    assert "auction=" in reported.differences[0]


@pytest.mark.parametrize("name", ["q4", "q5", "q7", "q8"])
def test_the_watermark_the_oracle_computes_is_the_one_spark_wrote_down(
    nexmark: Done, name: str
) -> None:
    trial, asked = nexmark.trial, nexmark.asked(name)
    stage = asked.query.stages[0]
    past = Committed(trial.client, stage, trial.ids[name][stage.name], {}, {})
    computed = [one.watermark_us // 1_000 for one in past.batches]
    past.close()
    offsets = trial.checkpoints(asked) / stage.name / "offsets"
    written = [
        json.loads((offsets / str(batch)).read_text().splitlines()[1])["batchWatermarkMs"]
        for batch in range(len(computed))
    ]
    assert computed == written
    assert len(set(computed)) > 10
