"""NEXMark with the log in JetStream, three replicas: its server and its driver killed half-way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from penstock.bench.answers import groups
from penstock.bench.answers.trial import Answered, Size, Trial
from penstock.testing.nats_servers import NatsServers, nats_program
from support.processes import QUICK_START

NAMES = ("q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8")
SIZE = Size(26, 1_800, QUICK_START)


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Answered]]:
    if nats_program() is None:
        pytest.skip("there is no nats-server; Debian's package has that name")
    folder = tmp_path_factory.mktemp("jetstream")
    group = groups.nexmark().only(frozenset(NAMES))
    with (
        NatsServers(folder / "nats") as servers,
        Trial(group, SIZE, folder / "trial", log=servers.url) as trial,
    ):
        yield {one.query: one for one in trial.run()}


@pytest.mark.parametrize("name", NAMES)
def test_a_nexmark_query_is_right_after_every_batch(
    answered: Mapping[str, Answered], name: str
) -> None:
    found = answered[name]
    assert found.error is None, found.error
    assert found.different == 0, "\n".join(found.differences)
    assert found.rows > 0
    assert found.events == SIZE.commits * SIZE.events
    assert 0 < found.batches_at_the_kill < found.batches
    assert found.instance == 2
