"""Every query on generated events, its driver killed half-way: DuckDB agrees with every batch."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock import oracle, queries
from penstock.client import Client
from penstock.oracle import Checked
from penstock.oracle.committed import Committed
from penstock.queries import Query
from penstock.workloads.ads import Ads, AdsOptions
from penstock.workloads.cluster_trace import ClusterTrace, ClusterTraceOptions
from penstock.workloads.linear_road import LinearRoad, LinearRoadOptions
from penstock.workloads.nexmark import Nexmark, NexmarkOptions
from support import wrong_queries
from support.driving import START_S, marked, query_ids, wait_for_queries
from support.feeding import Feed, NexmarkSource, OneStream, Source, create_outputs
from support.processes import DriverProcess, ServerProcess, wait_until
from support.redis_server import RedisServer

SEED = 7
BEFORE_THE_KILL = 8
FINISH_S = 240

# Two events share every millisecond, so that ties in time are common.
NEXMARK = NexmarkSource(Nexmark(NexmarkOptions(rate=2_000), SEED))
# Less than 30 s apart, so that a vehicle meets itself in a window. Windows that slide by 1 s make
# thirty rows of each report, so they are run over fewer.
ROADS = LinearRoadOptions(rate=1_000, report_every_s=20)
REPORTS = OneStream("reports", "vehicle", LinearRoad(ROADS, SEED))
FEW_REPORTS = OneStream("few_reports", "vehicle", LinearRoad(ROADS, SEED + 1))
TASKS = OneStream("tasks", "job", ClusterTrace(ClusterTraceOptions(rate=500), SEED))
ADS = Ads(AdsOptions(rate=1_000, jitter_ms=50), SEED)
CAMPAIGNS = pa.Table.from_batches([ADS.campaigns()])
AD_EVENTS = OneStream("ads", "user_id", ADS)

FINE = {name: {"reports": "few_reports"} for name in queries.LINEAR_ROAD if name.endswith("_30_1")}


@dataclass(frozen=True)
class Run:
    """A workload that was run to its end with a kill in the middle."""

    client: Client
    queries: Mapping[str, Query]
    ids: Mapping[str, str]
    tables: Mapping[str, pa.Table]
    checkpoints: Path
    at_the_kill: Mapping[str, Checked]
    """What the oracle said when the driver was dead and had not been started again."""

    def check(self, name: str) -> Checked:
        return oracle.check(
            self.queries[name], self.client, self.ids, streams=FINE.get(name), tables=self.tables
        )


def run(
    folder: Path,
    commits: int,
    sources: Sequence[tuple[Source, int]],
    chosen: Mapping[str, Query],
    tables: Mapping[str, pa.Table] | None = None,
    parameters: Mapping[str, dict[str, Any]] | None = None,
) -> Iterator[Run]:
    """Runs the queries over the first commits, kills their driver, and runs them to the end."""
    server = ServerProcess(folder / "data").start()
    client = server.client()
    feed = Feed(client, sources)
    feed.append(BEFORE_THE_KILL)
    for query in chosen.values():
        create_outputs(client, query)
    told = {
        name: {"parameters": (parameters or {}).get(name, {}), "streams": FINE.get(name, {})}
        for name in chosen
    }
    stages = [stage.name for query in chosen.values() for stage in query.stages]

    def driver(**args: object) -> DriverProcess:
        everything: dict[str, object] = {"queries": told, **args}
        return DriverProcess(server, folder / "job", script="queries_job.py", args=everything)

    first = driver()
    ids = wait_for_queries(first, len(stages))
    wait_until(
        "every query has committed some batches",
        lambda: all(marked(client, ids[stage]) >= 2 for stage in stages) or not first.is_running(),
        START_S,
    )
    assert first.is_running(), first.said()[-4000:]
    feed.append(1)
    time.sleep(0.5)
    first.kill()
    done = Run(client, chosen, ids, tables or {}, folder / "job" / "checkpoints", {})
    done = replace(done, at_the_kill={name: done.check(name) for name in chosen})
    feed.append(commits - BEFORE_THE_KILL - 1)
    second = driver(available_now=True)
    assert second.wait(FINISH_S) == 0, second.said()[-4000:]
    assert query_ids(second) == ids
    yield done
    server.stop()


@pytest.fixture(scope="module")
def nexmark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    chosen = {name: queries.named(name) for name in queries.NEXMARK}
    chosen["q5_without_ties"] = wrong_queries.q5_without_ties()
    # Two commits more than the others: Q6 has its first winners when four seconds have passed.
    yield from run(tmp_path_factory.mktemp("nexmark"), 22, [(NEXMARK, 4_600)], chosen)


@dataclass(frozen=True)
class Store:
    """A filled Redis, or why there is none."""

    url: str | None
    missing: str = ""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    program = RedisServer.program()
    try:
        import redis
    except ImportError:
        yield Store(None, "the redis client is not installed; the extra `redis` has it")
        return
    if program is None:
        yield Store(None, "there is no redis-server; Debian's package has that name")
        return
    with RedisServer(program, tmp_path_factory.mktemp("redis")) as server:
        ids = (CAMPAIGNS[name].to_pylist() for name in ("ad_id", "campaign_id"))
        with redis.Redis.from_url(server.url) as filled:
            filled.mset(dict(zip(*ids, strict=True)))
        yield Store(server.url)


@pytest.fixture(scope="module")
def others(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Linear Road, cluster monitoring and, where there is a Redis, the ads, in one driver."""
    chosen = {name: queries.named(name) for name in (*queries.LINEAR_ROAD, *queries.CLUSTER)}
    sources: list[tuple[Source, int]] = [(REPORTS, 2_500), (FEW_REPORTS, 400), (TASKS, 2_500)]
    parameters: dict[str, dict[str, Any]] = {}
    if store.url is not None:
        parameters["ysb"] = {"redis": store.url}
        chosen["ysb"] = queries.named("ysb", redis=store.url)
        sources.append((AD_EVENTS, 5_000))
    folder = tmp_path_factory.mktemp("others")
    yield from run(folder, 20, sources, chosen, {"campaigns": CAMPAIGNS}, parameters)


def assert_right(done: Run, name: str) -> None:
    before, after = done.at_the_kill[name], done.check(name)
    assert before.is_right, str(before)
    assert after.is_right, str(after)
    assert after.rows > 0
    for stage in done.queries[name].stages:
        assert after.batches[stage.name] >= 20
        assert 0 < before.batches[stage.name] < after.batches[stage.name]
        assert done.client.query(done.ids[stage.name])["instance"] == 2


@pytest.mark.parametrize("name", queries.NEXMARK)
def test_a_nexmark_query_is_right_after_every_batch(nexmark: Run, name: str) -> None:
    assert_right(nexmark, name)


@pytest.mark.parametrize("name", [*queries.LINEAR_ROAD, *queries.CLUSTER])
def test_a_road_or_cluster_query_is_right_after_every_batch(others: Run, name: str) -> None:
    assert_right(others, name)


def test_the_ad_query_is_right_after_every_batch(store: Store, others: Run) -> None:
    if store.url is None:
        pytest.skip(f"skipped, because {store.missing}")
    assert_right(others, "ysb")


def test_a_query_that_drops_ties_is_found_out(nexmark: Run) -> None:
    found = nexmark.check("q5_without_ties")
    assert 0 < found.different < found.rows
    first = found.differences[0]
    assert first.what == "expected but not committed"
    assert first.lsn == nexmark.client.markers(nexmark.ids["q5_without_ties"])[first.batch]["lsn"]
    assert f"q5_without_ties, batch {first.batch} (marker {first.lsn})" in str(found)
    assert "auction=" in str(found)


@pytest.mark.parametrize("name", ["q4", "q5", "q7", "q8"])
def test_the_watermark_the_oracle_computes_is_the_one_spark_wrote_down(
    nexmark: Run, name: str
) -> None:
    stage = nexmark.queries[name].stages[0]
    past = Committed(nexmark.client, stage, nexmark.ids[stage.name], {}, {})
    computed = [one.watermark_us // 1_000 for one in past.batches]
    past.close()
    offsets = nexmark.checkpoints / stage.name / "offsets"
    written = [
        json.loads((offsets / str(batch)).read_text().splitlines()[1])["batchWatermarkMs"]
        for batch in range(len(computed))
    ]
    assert computed == written
    assert len(set(computed)) > 10
