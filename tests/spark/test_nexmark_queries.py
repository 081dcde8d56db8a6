"""NEXMark on generated events, its driver killed half-way: DuckDB agrees with every batch."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from penstock_lab import queries
from penstock_lab.experiment.campaigns import fill_side_input
from penstock_lab.measure import query_groups as groups
from penstock_lab.measure.killed_driver import Size
from penstock_lab.measure.query_groups import Asked, Group
from penstock_lab.oracle.committed import Committed
from support import wrong_queries
from support.servers.processes import QUICK_START
from support.servers.redis_server import RedisServer
from support.spark.mechanisms_off import PLAIN_BATCHES
from support.tried_queries import Done, assert_right, tried

# Two commits more than the others: Q6 has its first winners when four seconds have passed. What the
# first driver leaves without our mechanisms, the second one goes on from with them.
AUCTIONS = Size(22, 4_600, {**QUICK_START, **PLAIN_BATCHES}, QUICK_START)


@pytest.fixture(scope="module")
def nexmark(
    redis_if_installed: RedisServer | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Done]:
    # Q13 looks its side input up where there is a Redis, and joins it elsewhere.
    url = None if redis_if_installed is None else redis_if_installed.url
    if url is not None:
        fill_side_input(url)
    wrong = Group("wrong", (), (Asked(wrong_queries.q5_without_ties()),))
    group = groups.merged("nexmark", groups.nexmark(url), wrong)
    yield from tried(group, AUCTIONS, tmp_path_factory.mktemp("nexmark"))


@pytest.mark.parametrize("name", queries.NEXMARK)
def test_a_nexmark_query_is_right_after_every_batch(nexmark: Done, name: str) -> None:
    assert_right(nexmark, name)


def test_a_query_that_drops_ties_is_found_out(nexmark: Done) -> None:
    name = "q5_without_ties"
    reported = nexmark.answered[name]
    assert not reported.is_right
    assert 0 < reported.different < reported.rows
    comparison = nexmark.trial.check(nexmark.asked(name))
    first = comparison.differences[0]
    assert first.kind == "expected but not committed"
    ids = nexmark.trial.ids[name]
    assert first.batch is not None
    assert first.lsn == nexmark.trial.client.markers(ids[name])[first.batch].lsn
    assert f"{name}, batch {first.batch} (marker {first.lsn})" in reported.differences[0]
    assert "auction=" in reported.differences[0]


@pytest.mark.parametrize("name", ["q4", "q5", "q7", "q8"])
def test_the_watermark_the_oracle_computes_is_the_one_spark_wrote_down(
    nexmark: Done, name: str
) -> None:
    trial, asked = nexmark.trial, nexmark.asked(name)
    stage = asked.query.stages[0]
    past = Committed(trial.client, stage, trial.ids[name][stage.name], {}, {})
    computed = [batch.watermark_us // 1_000 for batch in past.batches]
    past.close()
    offsets = trial.checkpoints(asked) / stage.name / "offsets"
    written = [
        json.loads((offsets / str(batch)).read_text().splitlines()[1])["batchWatermarkMs"]
        for batch in range(len(computed))
    ]
    assert computed == written
    assert len(set(computed)) > 10
